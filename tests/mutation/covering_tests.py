"""Which unit tests execute which line of the core, from one run under coverage."""

import hashlib
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from coverage import CoverageData

OUTSIDE = ""
SETTINGS = """[run]
dynamic_context = test_function
source = traindyno/core
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class CoveringTests:
    """``by_line``: (file, line) → tests such as ``tests/unit/core/test_x.py::test_y``; "" is code outside of tests."""

    by_line: dict[tuple[str, int], frozenset[str]]

    def of(self, file: str, line: int) -> list[str]:
        """The tests to try first, those of the module's own room in front; none for what runs at import only."""
        room = f"tests/unit/{Path(file).parent.relative_to('traindyno').as_posix()}/"
        tests = self.by_line.get((file, line), frozenset()) - {OUTSIDE}
        return sorted(tests, key=lambda test: (Path(file).stem not in test, not test.startswith(room), test))

    def are_all(self, file: str, line: int) -> bool:
        """Whether no fixture and no import executes the line, so that only these tests (and subprocesses) can fail."""
        return OUTSIDE not in self.by_line.get((file, line), {OUTSIDE})


def record_covering_tests(tree: Path, folder: Path) -> CoveringTests:
    """Run the unit tests of the tree once; for the same sources and tests, read the data of the last time."""
    data = folder / f"coverage-{_digest(tree)}.sqlite"
    if not data.exists():
        (folder / "coveragerc").write_text(SETTINGS)
        draft = folder / "coverage.draft"
        command = ["-m", "coverage", "run", "--rcfile", str(folder / "coveragerc"), "--data-file", str(draft)]
        tests = ["-m", "pytest", "tests/unit", "-q", "-x", "-n0", "-p", "no:cacheprovider"]
        environment = {**os.environ, "PYTHONPATH": str(tree)}
        subprocess.run([sys.executable, *command, *tests], cwd=tree, env=environment, check=True)
        draft.rename(data)
    return _read(data, tree)


def _read(data: Path, tree: Path) -> CoveringTests:
    found = CoverageData(basename=str(data))
    found.read()
    by_line = {
        (Path(file).relative_to(tree).as_posix(), line): frozenset(node_id(tree, name) for name in contexts)
        for file in found.measured_files()
        for line, contexts in found.contexts_by_lineno(file).items()
    }
    return CoveringTests(by_line=by_line)


def _digest(tree: Path) -> str:
    sources = sorted(path for part in ("traindyno", "tests/unit") for path in (tree / part).rglob("*.py"))
    return hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:12]


def node_id(tree: Path, context: str) -> str:
    """``tests/unit/core/test_x.py::test_y``; a test that another module's class inherits has no id of its own here."""
    parts = context.split(".")
    for end in range(len(parts), 0, -1):
        file = Path("/".join(parts[:end]) + ".py")
        if file.name.startswith("test_") and (tree / file).is_file():
            return "::".join((file.as_posix(), *parts[end:]))
    return OUTSIDE
