"""How a cell's own failures raise what it takes, and how its trials are counted."""

from dataclasses import replace
from math import log

import pytest

from tests.unit.run_samples import completed_result, failed_result, make_cell, make_suite
from traindyno.core.costs.extra_time import extra_times
from traindyno.core.jobs.attempt import RunShare
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.verdict.cell_runs import group_runs
from traindyno.core.verdict.figure_table import build_figures
from traindyno.figures.beyond import ExtraTime
from traindyno.figures.table import FigureColumn

CELL = make_cell()
DONE = tuple(completed_result(CELL, trial) for trial in (1, 2))
LOST = failed_result(CELL, 3, Outcome.OUT_OF_MEMORY)


def extra(
    column: FigureColumn, measured: tuple[RunResult, ...], others: tuple[RunResult, ...]
) -> ExtraTime:
    return extra_times(measured, others).get(column, ExtraTime())


def test_a_failed_trial_is_paid_again_with_the_error_of_a_share() -> None:
    lost = extra(FigureColumn.USD, DONE, (LOST,))
    # two of three succeeded; Jeffreys: (2 + 0.5) / (3 + 1)
    assert lost.log_factor == pytest.approx(log(3 / 2))
    assert lost.variance == pytest.approx((1 - 0.625) / (3 * 0.625))


def test_a_fault_of_the_service_is_not_the_cells() -> None:
    fault = replace(LOST, outcome=Outcome.INTERNAL_ERROR)
    assert extra(FigureColumn.USD, DONE, (fault,)) == ExtraTime()


def test_the_factor_is_one_without_failures_for_rates_and_without_any_success() -> None:
    assert extra(FigureColumn.SECONDS, DONE, ()) == ExtraTime()
    assert extra(FigureColumn.SAMPLES_PER_SECOND, DONE, (LOST,)) == ExtraTime()
    assert extra(FigureColumn.USD, (), (LOST,)) == ExtraTime()


def in_job(result: RunResult, job_name: str, place: int) -> RunResult:
    share = RunShare(own_seconds=80.0, start_seconds=20.0, end_seconds=5.0, place=place, runs=3)
    return replace(result, attempts=(replace(result.attempts[-1], job_name=job_name, share=share),))


def test_the_block_of_a_run_is_the_ending_attempt_of_its_job() -> None:
    others = [make_cell(f"0000000{number}") for number in (2, 3)]
    alone, first, second, again = (
        completed_result(cell, 1) for cell in (make_cell(), *others, make_cell("00000004"))
    )
    died = in_job(again, "lab-j-a1", 3).attempts[0]
    again = in_job(again, "lab-j-a2", 1)
    again = replace(again, attempts=(died, *again.attempts))
    results = [alone, in_job(first, "lab-j-a1", 1), in_job(second, "lab-j-a1", 2), again]
    grouped = group_runs(make_suite(), [result.run.cell for result in results], results)
    columns = build_figures(grouped).columns[FigureColumn.SAMPLES_PER_SECOND]
    trials = [trial for by_cell in columns.values() for trial in by_cell]
    assert [trial.place for trial in trials] == [None, 1, 2, 1]
    assert trials[0].job is None
    assert trials[1].job == trials[2].job != trials[3].job
    assert len({trial.block for trial in trials}) == 1
