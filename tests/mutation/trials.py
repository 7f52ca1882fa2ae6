"""One mutant against the unit tests, in a copy of the tree: the tests of its line first, then all of them."""

import os
import re
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.mutation.mutants import Mutant, mutated

SECONDS_FOR_ALL = 1_800.0
SECONDS_FOR_SOME = 600.0
MOST_TESTS_AT_FIRST = 300
# Building a wheel takes seconds and says nothing about the core.
ALL_TESTS = ("tests/unit", "--ignore", "tests/unit/test_wheel.py", "--ignore", "tests/unit/mutation")
TESTS_WITH_PROCESSES = ("tests/unit/cli", "tests/unit/test_boundaries.py")
# In pytest's last line: the fault broke an import, so that the tests that were asked for were not even collected.
BROKEN_IMPORT = re.compile(r"[1-9]\d* errors? in ")
PASSED, FAILED, INTERRUPTED, INTERNAL, USAGE, NO_TESTS = range(6)


class TestsUnusable(Exception):
    """pytest could not run the tests that it was given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """A copy of the repository that one worker changes."""

    folder: Path

    @classmethod
    def copied_from(cls, root: Path, folder: Path) -> "Tree":
        listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
        names = subprocess.run(listed, cwd=root, check=True, capture_output=True, text=True).stdout.splitlines()
        shutil.rmtree(folder, ignore_errors=True)
        for name in names:
            if (root / name).is_file():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(root / name, folder / name)
        return cls(folder=folder)

    def finds(self, file: str, mutant: Mutant, first: list[str], *, are_all: bool) -> bool:
        """Whether a test fails with the fault; a test that does not end counts as failed.

        ``first`` are the tests of the line; if ``are_all``, the others can't fail, but for those that start a process.
        """
        rest = TESTS_WITH_PROCESSES if are_all and len(first) <= MOST_TESTS_AT_FIRST else ALL_TESTS
        path = self.folder / file
        source = path.read_text()
        path.write_text(mutated(source, mutant))
        try:
            some = first[:MOST_TESTS_AT_FIRST]
            return bool(some and self._fails(some, SECONDS_FOR_SOME)) or self._fails([*rest], SECONDS_FOR_ALL)
        finally:
            path.write_text(source)

    def _fails(self, tests: list[str], seconds: float) -> bool:
        command = [sys.executable, "-B", "-m", "pytest", "-q", "-x", "-n0", "-p", "no:cacheprovider", *tests]
        environment = {**os.environ, "PYTHONPATH": str(self.folder)}
        ran = subprocess.Popen(
            command,
            cwd=self.folder,
            env=environment,
            start_new_session=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        try:
            output, _ = ran.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(ran.pid, signal.SIGKILL)
            ran.communicate()
            return True
        if ran.returncode in {PASSED, FAILED, INTERRUPTED}:
            return ran.returncode != PASSED
        if ran.returncode == USAGE and BROKEN_IMPORT.search(output):
            return True
        raise TestsUnusable(f"pytest ended with {ran.returncode} on {tests[:3]}: {output[-2000:]}")
