"""Which unit tests execute which line of the core: recorded under coverage, again only where files have changed."""

import hashlib
import json
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.mutation.recording import OUTSIDE

# Building a wheel takes seconds and says nothing about the core; the tests of the mutants are no tests of the core. The
# page of the figures has a digest of the code, which every mutant changes.
LEFT_OUT = ("tests/unit/test_wheel.py", "tests/unit/mutation/", "tests/unit/bench/test_performance_page.py")


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """What one test file executes: ``lines`` are core file → line → its tests, or the file itself for shared fixtures.

    ``digests`` are those of the files that it depends on: if one changes, the file is recorded again.
    """

    digests: dict[str, str]
    seconds: dict[str, float]
    starting_processes: list[str]
    lines: dict[str, dict[str, list[str]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class CoveringTests:
    """By test file; ``at_import`` are the lines of the core that run at import, so that every test depends on them."""

    records: dict[str, Record]
    at_import: frozenset[tuple[str, int]]

    def of(self, file: str, line: int) -> list[str]:
        """The tests of the line: those of the module's own room in front, then the fast ones."""
        tests = {test for record in self.records.values() for test in record.lines.get(file, {}).get(str(line), [])}
        seconds = {test: spent for record in self.records.values() for test, spent in record.seconds.items()}
        return sorted(tests, key=lambda test: (*_distance(file, test), seconds.get(test, 0.0), test))

    def are_all(self, file: str, line: int) -> bool:
        """Whether no import executes the line, so that only these tests (and subprocesses) can fail."""
        return (file, line) not in self.at_import and bool(self.of(file, line))

    def files(self, file: str) -> list[str]:
        """Every test file: those of the module's own room in front, then those that execute most of its lines."""
        return sorted(
            self.records,
            key=lambda test: (*_distance(file, test), -len(self.records[test].lines.get(file, {})), test),
        )

    @property
    def starting_processes(self) -> list[str]:
        return sorted(test for record in self.records.values() for test in record.starting_processes)

    def seconds(self, tests: Iterable[str]) -> list[float]:
        """What each of the tests, or of the tests in these files, took when it was recorded."""
        wanted = set(tests)
        return [
            spent
            for file, record in self.records.items()
            for test, spent in record.seconds.items()
            if test in wanted or file in wanted
        ]


def _distance(file: str, test: str) -> tuple[bool, bool]:
    room = f"tests/unit/{Path(file).parent.relative_to('traindyno').as_posix()}/"
    return f"test_{Path(file).stem}.py" not in test, not test.startswith(room)


def record_covering_tests(tree: Path, folder: Path, *, within: str) -> CoveringTests:
    """Run those unit tests of the tree under coverage that have changed, or whose core has, since the last time.

    ``within`` is the folder of the tests that are used.
    """
    kept = folder / "covering.json"
    stored = json.loads(kept.read_text()) if kept.exists() else {"records": {}, "at_import": []}
    records = {file: Record(**record) for file, record in stored["records"].items()}
    at_import = {(file, line) for file, line in stored["at_import"]}
    modules = sorted(path.relative_to(tree).as_posix() for path in (tree / "tests/unit").rglob("*.py"))
    helpers = [file for file in modules if not Path(file).name.startswith("test_")]
    tests = [file for file in modules if file not in helpers and not file.startswith(LEFT_OUT)]
    files = [file for file in tests if file.startswith(within)]
    stale = [file for file in files if file not in records or not _is_current(tree, records[file])]
    if stale:
        run = _record(tree, folder / "recording.json", stale)
        # Lines that ran at the import of files recorded earlier stay: one too many only costs time.
        at_import = (at_import if len(stale) < len(tests) else set()) | _lines_at_import(run.lines)
        records |= {file: _record_of(file, run, tree, [file, *helpers]) for file in stale}
    records = {file: record for file, record in records.items() if file in tests}
    document = {"records": {file: asdict(record) for file, record in records.items()}, "at_import": sorted(at_import)}
    kept.write_text(json.dumps(document))
    return CoveringTests(records={file: records[file] for file in files}, at_import=frozenset(at_import))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """What ``recording`` wrote of one run."""

    seconds: dict[str, float]
    starting_processes: list[str]
    lines: dict[str, dict[str, list[str]]]


def _record(tree: Path, out: Path, test_files: list[str]) -> _Run:
    environment = {**os.environ, "PYTHONPATH": str(tree)}
    command = [sys.executable, "-m", "tests.mutation.recording", str(out), *test_files]
    subprocess.run(command, cwd=tree, env=environment, check=True)
    return _Run(**json.loads(out.read_text()))


def _lines_at_import(lines: dict[str, dict[str, list[str]]]) -> set[tuple[str, int]]:
    return {(file, int(line)) for file, by_line in lines.items() for line, tests in by_line.items() if OUTSIDE in tests}


def _record_of(test_file: str, run: _Run, tree: Path, own: list[str]) -> Record:
    lines: defaultdict[str, dict[str, list[str]]] = defaultdict(dict)
    for file, by_line in run.lines.items():
        for line, tests in by_line.items():
            if mine := [test for test in tests if test.partition("::")[0] == test_file]:
                lines[file][line] = mine
    return Record(
        digests={file: _digest(tree / file) for file in (*own, *lines)},
        seconds={test: spent for test, spent in run.seconds.items() if test.startswith(f"{test_file}::")},
        starting_processes=[test for test in run.starting_processes if test.partition("::")[0] == test_file],
        lines=dict(lines),
    )


def _is_current(tree: Path, record: Record) -> bool:
    return all((tree / file).exists() and _digest(tree / file) == digest for file, digest in record.digests.items())


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:12]
