"""How a cell's own failures raise what it takes, and how its trials are counted."""

from dataclasses import replace
from math import log

import pytest

from tests.unit.run_samples import completed_result, failed_result, known, make_cell, make_suite
from traindyno.core.jobs.attempt import RunShare
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.verdict.cell_trials import CellTrials, Noise, estimate_cell, suite_trials
from traindyno.core.verdict.extra_time import ExtraTime
from traindyno.core.verdict.quantity import projected_seconds, projected_usd, samples_per_second

CELL = make_cell()
DONE = tuple(completed_result(CELL, trial) for trial in (1, 2))
LOST = failed_result(CELL, 3, Outcome.OUT_OF_MEMORY)


def test_a_failed_trial_is_paid_again_with_the_error_of_a_share() -> None:
    found = known(CellTrials(cell=CELL, measured=DONE, others=(LOST,)).extra(projected_usd))
    # two of three succeeded; Jeffreys: (2 + 0.5) / (3 + 1)
    assert found.log_factor == pytest.approx(log(3 / 2))
    assert found.variance == pytest.approx((1 - 0.625) / (3 * 0.625))


def test_a_fault_of_the_service_is_not_the_cells() -> None:
    fault = replace(LOST, outcome=Outcome.INTERNAL_ERROR)
    assert CellTrials(cell=CELL, measured=DONE, others=(fault,)).extra(projected_usd) == ExtraTime()


def test_the_factor_is_one_without_failures_for_rates_and_without_any_success() -> None:
    assert CellTrials(cell=CELL, measured=DONE, others=()).extra(projected_seconds) == ExtraTime()
    assert (
        CellTrials(cell=CELL, measured=DONE, others=(LOST,)).extra(samples_per_second)
        == ExtraTime()
    )
    assert CellTrials(cell=CELL, measured=(), others=(LOST,)).extra(projected_usd) == ExtraTime()


def test_each_trial_is_projected_once_for_all_that_is_said_of_it() -> None:
    cell = make_cell()
    (trials,) = suite_trials(
        make_suite(), [cell], [completed_result(cell, trial) for trial in (1, 2, 3)]
    )
    asked: list[RunResult] = []

    def quantity(result: RunResult) -> float:
        asked.append(result)
        return 1.0 + len(asked)

    assert trials.trials(quantity) == trials.trials(quantity)
    assert estimate_cell(trials, quantity, Noise()) is not None
    assert asked == list(trials.measured)
    # other trials of the cell are asked again
    assert len(replace(trials, measured=trials.measured[:2]).trials(quantity)) == 2
    assert len(asked) == 5


def in_job(result: RunResult, job_name: str, place: int) -> RunResult:
    share = RunShare(own_seconds=80.0, start_seconds=20.0, end_seconds=5.0, place=place, runs=3)
    return replace(result, attempts=(replace(result.attempts[-1], job_name=job_name, share=share),))


def test_the_block_of_a_run_is_the_attempt_of_the_job_that_carried_it_to_its_end() -> None:
    others = [make_cell(f"0000000{number}") for number in (2, 3)]
    alone, first, second, again = (
        completed_result(cell, 1) for cell in (make_cell(), *others, make_cell("00000004"))
    )
    died = in_job(again, "lab-j-a1", 3).attempts[0]
    again = in_job(again, "lab-j-a2", 1)
    again = replace(again, attempts=(died, *again.attempts))
    results = [alone, in_job(first, "lab-j-a1", 1), in_job(second, "lab-j-a1", 2), again]
    found = suite_trials(make_suite(), [result.run.cell for result in results], results)
    trials = [trial for each in found for trial in each.trials(samples_per_second)]
    assert [trial.place for trial in trials] == [None, 1, 2, 1]
    assert trials[0].job is None
    assert trials[1].job == trials[2].job != trials[3].job
    assert len({trial.block for trial in trials}) == 1
