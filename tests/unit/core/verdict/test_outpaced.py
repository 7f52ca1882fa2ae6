"""A run that its job ended because it could not win is a result with a bound: no failure, and never
recommended.
"""

import re
from dataclasses import replace

import pytest

from tests.sentences import Snapshot
from tests.unit.cli.test_verdict_table import printed
from tests.unit.run_samples import completed_result, failed_result, make_suite
from traindyno.core.costs.hazard import measure_success
from traindyno.core.costs.summarise import run_columns
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.jobs.run_end import OutpacedBound
from traindyno.core.measurement.run_result import RunResult, parse_run_result, run_result_document
from traindyno.core.suite.cells import Cell
from traindyno.core.suite.choices import Strategy
from traindyno.core.verdict.judge import judge
from traindyno.core.verdict.report_data import Report
from traindyno.core.verdict.verdict import Finding, Verdict
from traindyno.core.verdict.verdict_text import describe_verdict
from traindyno.report.cells_section import draw_cells
from traindyno.report.runs_section import draw_runs

STRATEGIES = (Strategy.DDP, Strategy.FSDP, Strategy.ZERO1, Strategy.SMDDP)
SUITE = make_suite(
    matrix={"strategy": STRATEGIES}, training={"instance": "ml.p4d.24xlarge"}, examples=100_000
)
CELLS = SUITE.cells
FAST, NEAR, BEHIND, FURTHER = CELLS
SAYS = "at least 25 % slower"


def outpaced_result(
    cell: Cell, trial: int, by: Cell = FAST, least_ratio: float = 1.25
) -> RunResult:
    bound = OutpacedBound(by=f"{by.cell_id}-t{trial}", least_ratio=least_ratio, steps=5)
    result = failed_result(cell, trial, Outcome.OUTPACED, message=SAYS)
    return replace(
        result,
        attempts=tuple(replace(attempt, bound=bound) for attempt in result.attempts),
        log_tail=(),
    )


def trials(cell: Cell, *seconds: float) -> list[RunResult]:
    return [
        completed_result(cell, trial, step_seconds=step_seconds * (1 + 0.001 * trial), suite=SUITE)
        for trial, step_seconds in enumerate(seconds, 1)
    ]


RESULTS = [
    *trials(FAST, 1.0, 1.0, 1.0),
    *trials(NEAR, 1.2, 1.2, 1.2),
    outpaced_result(BEHIND, 1),
    outpaced_result(FURTHER, 1, least_ratio=1.8),
]


@pytest.fixture(scope="module")
def verdict() -> Verdict:
    return judge(SUITE, CELLS, RESULTS)


def test_an_outpaced_cell_takes_nothing_from_the_answer(
    snapshot: Snapshot, verdict: Verdict
) -> None:
    assert (verdict.recommended, verdict.finding) == (FAST.cell_id, Finding.RECOMMENDED)
    assert [rival.cell_id for rival in verdict.rivals] == [NEAR.cell_id]
    row = verdict.row(BEHIND.cell_id)
    assert (row.failed, row.outpaced, row.trials, row.outcomes) == (0, 1, 0, {"outpaced": 1})
    assert row.least_behind == pytest.approx(0.25)
    text = describe_verdict(verdict)
    says = " ".join(text.support)
    snapshot(says)
    assert "failed" not in " ".join((text.headline, *text.support, *text.cautions))


def test_a_hopeless_run_is_no_failure_of_its_cell() -> None:
    both = [completed_result(FAST, 1, suite=SUITE), outpaced_result(FAST, 2)]
    assert (success := measure_success(both)).successes == success.attempts == 1


def test_one_slow_run_of_many_takes_no_cell_from_the_comparison() -> None:
    """As where the run that was ahead of it belongs to a cell that failed later."""
    results = [*trials(FAST, 1.0, 1.0, 1.0), *trials(NEAR, 0.9, 0.9, 0.9), outpaced_result(NEAR, 4)]
    judged = judge(SUITE, CELLS[:2], results)
    assert (judged.recommended, dict(judged.refused)) == (NEAR.cell_id, {})


def test_the_bound_is_in_the_stored_result_and_in_the_rows() -> None:
    result = outpaced_result(BEHIND, 1)
    assert parse_run_result(run_result_document(result)) == result
    row = run_columns(result)
    assert (row["outcome"], row["outpaced_by"], row["least_ratio"]) == (
        Outcome.OUTPACED,
        f"{FAST.cell_id}-t1",
        1.25,
    )
    assert run_columns(RESULTS[0])["least_ratio"] is None
    old = run_result_document(RESULTS[0])
    del old["attempts"][0]["bound"]
    assert parse_run_result(old) == RESULTS[0]


def reported(verdict: Verdict) -> Report:
    return Report(
        execution_id="execution-1",
        created_at=0.0,
        suite=SUITE,
        cells=CELLS,
        verdict=verdict,
        results=tuple(RESULTS),
    )


def test_the_table_in_the_terminal_has_the_bound(verdict: Verdict) -> None:
    text = printed(reported(verdict))
    lines = [[word.strip() for word in re.split("[│┃]", line)] for line in text.splitlines()]
    (heads,) = (line for line in lines if "outpaced" in line)
    cells = {line[2]: line[heads.index("outpaced")] for line in lines if len(line) == len(heads)}
    assert {cell.label: cells[cell.label] for cell in CELLS} == {
        FAST.label: "no",
        NEAR.label: "no",
        BEHIND.label: "25.0 %",
        FURTHER.label: "80.0 %",
    }


def test_the_report_shows_it_as_outpaced(verdict: Verdict) -> None:
    report = reported(verdict)
    runs = draw_runs(report)
    assert f"outpaced: {SAYS}" in runs
    assert 'class="failure"' not in runs
    assert 'class="outcome bad"' not in runs
    cells = draw_cells(verdict)
    assert "Outpaced" in cells
    assert "25.0 %" in cells
