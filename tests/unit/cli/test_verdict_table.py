from dataclasses import replace
from io import StringIO

from rich.console import Console

from tests.unit.report.test_report import report_of, sample_suite
from tests.unit.run_samples import completed_result
from traindyno.cli.verdict_table import print_verdict
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.suite.cells import expand_cells


def printed(results: list[RunResult]) -> str:
    console = Console(file=StringIO(), width=200)
    print_verdict(console, report_of(results))
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


def trials(*, recurring_share: float = 0.0, reason: str | None = None) -> list[RunResult]:
    cell, *_ = expand_cells(sample_suite())
    results = []
    for trial in (1, 2):
        result = completed_result(cell, trial, suite=sample_suite())
        measured = result.measured
        assert measured is not None
        assert measured.throughput is not None
        throughput = replace(measured.throughput, recurring_share=recurring_share)
        state = replace(measured.steady_state, is_reached=reason is None, reason=reason)
        results.append(replace(result, measured=replace(measured, throughput=throughput, steady_state=state)))
    return results


def test_the_table_shows_the_time_before_training_and_the_interval_of_one_run() -> None:
    text = printed(trials())
    # starting 60 s and downloading 20 s; 12,499 s of steps and 170 s beside them
    for expected in ("before training", "80.0 s", "one run, 90 %", "3.52 h to 3.52 h"):
        assert expected in text
    assert "recurring" not in text


def test_what_recurs_has_a_column_where_something_does() -> None:
    text = printed(trials(recurring_share=0.2))
    assert "recurring" in text
    assert "20.0 %" in text


def test_trials_that_were_not_steady_are_named_with_their_reason() -> None:
    text = printed(trials(reason="step times drift: by +3.0% over the latest 200 steps"))
    assert "2 of 2 trials not steady: step times drift: by +3.0% over the latest 200 steps" in text
    assert "one run, 90 %" not in text
