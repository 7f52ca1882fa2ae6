"""A run of unit tests under coverage: `python -m tests.mutation.recording OUT FILE…` writes what each executes."""

import importlib
import json
import pkgutil
import sys
from collections import defaultdict
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from coverage import Coverage

CORE = "traindyno.core"
OUTSIDE = ""
STARTS_OF_PROCESSES = {"subprocess.Popen", "os.posix_spawn", "os.fork", "os.exec"}


class Recorder:
    """Names each test for coverage, times it, and notes if it starts a process: coverage does not see inside."""

    def __init__(self, coverage: Coverage) -> None:
        self.coverage = coverage
        self.test = OUTSIDE
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.starting_processes: set[str] = set()
        sys.addaudithook(self._notice)

    def pytest_collection_finish(self) -> None:
        """Import all of the core now, so that what runs at import counts as no test's."""
        package = importlib.import_module(CORE)
        names = [each.name for each in pkgutil.walk_packages(package.__path__, f"{CORE}.")]
        modules = [importlib.import_module(name) for name in names]
        self.caches = [each for module in modules for each in vars(module).values() if hasattr(each, "cache_clear")]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        for cached in self.caches:
            cached.cache_clear()  # a test that reads what another one has put there depends on those lines too
        self._switch_to(item.nodeid.partition("[")[0])
        try:
            return (yield)
        finally:
            self._switch_to(OUTSIDE)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(
        self, fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
    ) -> Generator[None, Any, Any]:
        test = self.test
        if fixturedef.scope != "function":
            self._switch_to(request.node.nodeid.partition("::")[0])  # every test of the file depends on it
        try:
            return (yield)
        finally:
            self._switch_to(test)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds[report.nodeid.partition("[")[0]] += report.duration

    def _switch_to(self, test: str) -> None:
        if test != self.test:
            self.test = test
            self.coverage.switch_context(test)

    def _notice(self, event: str, _arguments: tuple[Any, ...]) -> None:
        if event in STARTS_OF_PROCESSES and self.test:
            self.starting_processes.add(self.test)


def record(out: Path, test_files: list[str]) -> int:
    """Exit status of pytest; the record is written if all tests passed."""
    coverage = Coverage(data_file=None, source=[CORE.replace(".", "/")], config_file=False)
    coverage.start()
    recorder = Recorder(coverage)
    options = ["-q", "-x", "-n0", "-p", "no:cacheprovider"]
    status = pytest.main([*options, *test_files], plugins=[recorder])
    coverage.stop()
    if status == pytest.ExitCode.OK:
        lines = {
            Path(file).relative_to(Path.cwd()).as_posix(): coverage.get_data().contexts_by_lineno(file)
            for file in coverage.get_data().measured_files()
        }
        found = {"seconds": recorder.seconds, "starting_processes": sorted(recorder.starting_processes), "lines": lines}
        out.write_text(json.dumps(found))
    return int(status)


if __name__ == "__main__":
    sys.exit(record(Path(sys.argv[1]), sys.argv[2:]))
