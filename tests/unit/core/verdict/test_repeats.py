"""Trials on a busy host are repeated once, and the repeat counts in place of what it repeats."""

from dataclasses import replace

import pytest

from tests.unit.run_samples import completed_result, make_suite
from traindyno.core.measurement.contention import Contention
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.suite.cells import expand_cells
from traindyno.core.suite.choices import Search, Strategy
from traindyno.core.suite.suite import Measurement, Suite
from traindyno.core.verdict.rounds import plan_round
from traindyno.core.verdict.summarise import summarise
from traindyno.core.verdict.verdict import judge

BUSY = Contention(steal_share=0.2, foreign_share=0.3, queue_share=0.2, involuntary_switches_per_second=50.0)
SUITE = make_suite(
    training={"instance": "ml.p4d.24xlarge"},
    matrix={"strategy": (Strategy.DDP, Strategy.FSDP)},
    measurement=Measurement(trials=2),
)
DDP, FSDP = expand_cells(SUITE)


def contended(result: RunResult) -> RunResult:
    assert result.measured is not None
    return replace(result, measured=replace(result.measured, contention=BUSY))


def results(*, contended_trial: int, seconds: float = 3.0) -> list[RunResult]:
    """One-second steps, and one trial of ddp that other work slowed down."""
    found = [completed_result(cell, trial) for cell in (DDP, FSDP) for trial in (1, 2)]
    slow = contended(completed_result(DDP, contended_trial, step_seconds=seconds))
    return [slow if (each.run.cell, each.run.trial) == (DDP, contended_trial) else each for each in found]


def next_round(suite: Suite, found: list[RunResult], number: int = 2) -> list[tuple[str, int]]:
    runs = plan_round(suite, (DDP, FSDP), execution_id="e", round_number=number, results=found)
    return [(run.cell.label, run.trial) for run in runs]


@pytest.mark.parametrize("trial", [1, 2])
def test_a_contended_trial_is_run_once_more(trial: int) -> None:
    found = results(contended_trial=trial)
    # Cells have two trials, so that the repeat of trial 1 is trial 3.
    assert next_round(SUITE, found) == [("ddp", trial + 2)]


def test_a_repeat_is_not_repeated_beyond_the_suites_limit() -> None:
    found = [*results(contended_trial=1), contended(completed_result(DDP, 3))]
    assert next_round(SUITE, found, 3) == []
    patient = replace(SUITE, limits=replace(SUITE.limits, max_contended_repeats=2))
    assert next_round(patient, found, 3) == [("ddp", 5)]
    never = replace(SUITE, limits=replace(SUITE.limits, max_contended_repeats=0))
    assert next_round(never, results(contended_trial=1)) == []


def test_on_a_quiet_host_nothing_is_repeated() -> None:
    quiet = [completed_result(cell, trial) for cell in (DDP, FSDP) for trial in (1, 2)]
    assert next_round(SUITE, quiet) == []


def test_an_elimination_repeats_before_it_drops_cells() -> None:
    suite = replace(SUITE, search=Search.ELIMINATE, measurement=Measurement(trials=4))
    slow = contended(completed_result(DDP, 1, step_seconds=3.0))
    found = [slow, *(completed_result(cell, trial) for cell, trial in ((DDP, 2), (FSDP, 1), (FSDP, 2)))]
    assert next_round(suite, found) == [("ddp", 5)]


def test_the_repeat_counts_in_place_of_the_contended_run_and_both_are_paid() -> None:
    first = results(contended_trial=1)
    before = judge(SUITE, (DDP, FSDP), first)
    after = judge(SUITE, (DDP, FSDP), [*first, completed_result(DDP, 3)])
    # 8 samples in a step of one second, and in the slow trial in three.
    assert before.row(DDP.cell_id).samples_per_second is not None
    assert before.row(DDP.cell_id).samples_per_second.mean < 6  # type: ignore[union-attr]
    assert after.row(DDP.cell_id).samples_per_second.mean == pytest.approx(8)  # type: ignore[union-attr]
    assert after.row(DDP.cell_id).trials == 2
    assert after.spent_usd is not None
    assert before.spent_usd is not None
    assert after.spent_usd > before.spent_usd


def test_a_contended_run_is_marked_in_its_row() -> None:
    slow, *others = results(contended_trial=1)
    assert summarise(slow).is_contended is True
    assert [summarise(each).is_contended for each in others] == [False] * 3
