"""What `run` says at its start, and whether anything was measured, which its exit status and that
of `watch` say.
"""

import errno
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import typer

from localcloud.home import HOME_VARIABLE, Home
from localcloud.run_repeats import DOCUMENT, KeptRepeats
from tests.sentences import Snapshot
from tests.unit.report.test_report import report_of, sample_suite
from tests.unit.run_samples import completed_result, failed_result, known, make_cell
from tests.unit.suites import script_document, small_suite
from traindyno.api.lab_target import LabTarget
from traindyno.api.reports import FoundReport
from traindyno.aws.executions import Execution
from traindyno.callbacks import full_disk
from traindyno.cli import main
from traindyno.cli.commands.run_commands import finish, keep_repeats, start_lines
from traindyno.cli.output import OutputFormat
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.suite.cells import Cell
from traindyno.core.suite.checks.suite_check import parse_suite
from traindyno.core.verdict.report_data import Report, report_document
from traindyno.features import FEATURES
from traindyno.store.results_bucket import ResultsBucket

ENDED = Execution(
    execution_id="execution-1",
    status="SUCCEEDED",
    started_at=0.0,
    ended_at=60.0,
    error=None,
    cause=None,
)


class OneObject:
    """S3 with one answer to every key."""

    def __init__(self, document: dict[str, Any]) -> None:
        self._text = json.dumps(document)

    def get_object(self, **_: str) -> dict[str, Any]:
        return {"Body": SimpleNamespace(read=self._text.encode)}


def target_with(report: Report, executions: Any = None) -> LabTarget:
    """A lab in which each execution has this report."""
    bucket = ResultsBucket(cast("Any", OneObject(report_document(report))), "results")
    nothing = cast("Any", None)
    services = cast("Any", SimpleNamespace(bucket=bucket))
    return LabTarget(
        is_local=True,
        deployment=nothing,
        executions=executions,
        services=services,
        features=FEATURES,
    )


def finished(results: list[RunResult], folder: Path) -> None:
    finish(target_with(report_of(results)), ENDED, OutputFormat.TABLE, folder)


def crashed(cell: Cell) -> RunResult:
    """After it logged steps."""
    result = replace(
        completed_result(cell, 1, suite=sample_suite()), outcome=Outcome.USER_CODE_ERROR
    )
    assert result.samples_per_second
    return result


@pytest.mark.parametrize("outcome", [Outcome.COST_STOPPED, Outcome.OUT_OF_MEMORY])
def test_a_reached_amount_comes_with_the_way_to_measure_the_rest(
    outcome: Outcome, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(typer.Exit):
        finished([failed_result(make_cell(), 1, outcome)], tmp_path)
    said = "to measure the rest: traindyno run SUITE --continue execution-1 --local"
    assert (said in capsys.readouterr().err) is (outcome is Outcome.COST_STOPPED)


@pytest.mark.parametrize(
    "ended_badly", [lambda cell: failed_result(cell, 1, Outcome.USER_CODE_ERROR), crashed]
)
def test_an_execution_without_a_measurement_ends_with_status_3(
    ended_badly: Callable[[Cell], RunResult], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(typer.Exit) as ended:
        finished([ended_badly(cell) for cell in sample_suite().cells], tmp_path)
    assert ended.value.exit_code == 3
    assert "no run of 3 was measured" in capsys.readouterr().err
    assert (tmp_path / "execution-1.html").exists()


def test_one_measured_run_is_enough_for_status_0(tmp_path: Path) -> None:
    first, second, third = sample_suite().cells
    failed = [failed_result(cell, 1, Outcome.OUT_OF_MEMORY) for cell in (second, third)]
    finished(
        [completed_result(first, 1, suite=sample_suite()), *failed], tmp_path
    )  # typer.Exit would be raised here
    assert (tmp_path / "execution-1.html").exists()


def test_the_repeats_of_local_cells_are_kept_in_the_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(HOME_VARIABLE, str(tmp_path / "home"))
    cells = [make_cell(name, instance=name) for name in ("local.cpu", "ml.g5.xlarge")]
    results = [completed_result(cell, trial) for cell in cells for trial in (1, 2, 3)]
    simulated = replace(results[0], is_simulated=True)
    short = replace(results[0], measured=replace(known(results[0].measured), steady_seconds=0.2))
    found_report = FoundReport(report=report_of([*results, simulated, short]), html=b"")
    keep_repeats(found_report)
    kept = known(Home(tmp_path / "home").read_as(DOCUMENT, KeptRepeats))
    assert {name: [*map(len, lengths)] for name, lengths in kept.measured.items()} == {
        "execution-1": [3]
    }


def test_a_command_unable_to_write_names_the_full_disk(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def copy() -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(tmp_path / "suite.tar"))

    monkeypatch.setattr(full_disk, "LEAST_FREE_BYTES", 10**18)
    monkeypatch.setattr(main, "commands", copy)
    with pytest.raises(SystemExit) as ended:
        main.app()
    assert ended.value.code == 1
    told = capsys.readouterr().err
    assert told.startswith(f"error: the disk of {tmp_path} is full, ")
    assert told.endswith("are free; free space on the disk\n")


def test_a_suite_without_models_to_deploy_is_told_so_at_its_start(snapshot: Snapshot) -> None:
    snapshot(list(start_lines(small_suite(), "mine", " --local")))
    saved = small_suite(measurement={"save_model": True})
    snapshot(list(start_lines(saved, "mine", "")))
    script = parse_suite(script_document())
    snapshot(list(start_lines(script, "mine", "")))
