"""One mutant against the unit tests, in a copy of the tree: the tests of its line first, then what else can fail."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from tests.mutation.covering_tests import CoveringTests
from tests.mutation.mutants import Mutant, mutated

# Many faults break most of the tests of their line: some tell as much as all do.
TESTS_AT_FIRST = 40
FILES_AT_FIRST = 8
# A test that takes so much longer with the fault does not end: it counts as failed.
TIMES_AS_LONG = 10
SECONDS_BESIDE = 30
# In pytest's last line: the fault broke an import, so that the tests that were asked for were not even collected.
BROKEN_IMPORT = re.compile(r"[1-9]\d* errors? in ")
FAILED_TEST = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)
OUT_OF_TIME = {-signal.SIGXCPU, -signal.SIGKILL}
PASSED, FAILED, INTERRUPTED, INTERNAL, USAGE, NO_TESTS = range(6)


class TestsUnusable(Exception):
    """pytest could not run the tests that it was given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """A copy of the repository that one worker changes, with the process whose forks run its tests."""

    folder: Path
    server: subprocess.Popen[str]

    @classmethod
    def copied_from(cls, root: Path, folder: Path) -> Self:
        listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
        names = subprocess.run(listed, cwd=root, check=True, capture_output=True, text=True).stdout.splitlines()
        shutil.rmtree(folder, ignore_errors=True)
        for name in names:
            if (root / name).is_file():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(root / name, folder / name)
        # -B: the bytecode of a mutant must not stay. What an unchanged tree needs is written by `write_bytecode`.
        command = [sys.executable, "-B", "-m", "tests.mutation.fork_server"]
        environment = {**os.environ, "PYTHONPATH": str(folder)}
        server = subprocess.Popen(
            command, cwd=folder, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        return cls(folder=folder, server=server)

    def write_bytecode(self, test_files: Iterable[str]) -> None:
        """Collect the tests once outside of the server, so that no fork compiles what does not change."""
        options = ["-q", "--collect-only", "-n0", "-p", "no:cacheprovider"]
        command = [sys.executable, "-m", "pytest", *options, *test_files]
        environment = {**os.environ, "PYTHONPATH": str(self.folder)}
        subprocess.run(command, cwd=self.folder, env=environment, check=True, stdout=subprocess.DEVNULL)

    def finds(self, file: str, mutant: Mutant, covering: CoveringTests) -> str | None:
        """The test that fails with the fault, "time" if one does not end, None if all pass."""
        path = self.folder / file
        source, times = path.read_text(), path.stat()
        path.write_text(mutated(source, mutant))
        try:
            for tests in in_turn(file, mutant.line, covering):
                if failed := self._failure(tests, covering.seconds(tests)):
                    return failed
            return None
        finally:
            path.write_text(source)
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))

    def close(self) -> None:
        if self.server.stdin is not None:
            self.server.stdin.close()
        self.server.wait()

    def _failure(self, tests: list[str], seconds: list[float]) -> str | None:
        limits = {
            "cpu_seconds": int(SECONDS_BESIDE + TIMES_AS_LONG * sum(seconds)),
            "test_seconds": int(SECONDS_BESIDE + TIMES_AS_LONG * max(seconds, default=0.0)),
        }
        answer = self._ask({"tests": tests, **limits})
        status, output = answer["status"], answer["output"]
        if status == PASSED:
            return None
        if status in OUT_OF_TIME:
            return "time"
        if status in {FAILED, INTERRUPTED} or (status == USAGE and BROKEN_IMPORT.search(output)):
            failed = FAILED_TEST.search(output)
            return failed.group(1) if failed else "import"
        raise TestsUnusable(f"pytest ended with {status} on {tests[:3]}: {output[-2000:]}")

    def _ask(self, order: dict[str, Any]) -> dict[str, Any]:
        orders, answers = self.server.stdin, self.server.stdout
        if orders is None or answers is None:
            raise TestsUnusable("the server of forks has no pipes")
        orders.write(json.dumps(order) + "\n")
        orders.flush()
        answer: dict[str, Any] = json.loads(answers.readline())
        return answer


def in_turn(file: str, line: int, covering: CoveringTests) -> list[list[str]]:
    """Some tests of the line, the other ones, then what else can fail: all if an import executes the line."""
    first = covering.of(file, line)
    if covering.are_all(file, line):
        rest = [covering.starting_processes]
    else:
        files = covering.files(file)
        rest = [files[:FILES_AT_FIRST], files[FILES_AT_FIRST:]]
    return [tests for tests in (first[:TESTS_AT_FIRST], first[TESTS_AT_FIRST:], *rest) if tests]
