"""The full run's checkpoints and evaluations at the cost that one had in the trial, by hand."""

from dataclasses import replace

import pytest

from tests.unit.run_samples import completed_result, known, make_suite, remeasured
from traindyno.core.costs.full_run import reschedule
from traindyno.core.costs.projection import project_run
from traindyno.core.measurement.run_result import RunResult, parse_run_result, run_result_document
from traindyno.core.measurement.stalls import OneTimeEvent, RecurringEvent
from traindyno.core.run.record import StopWhen
from traindyno.core.run.workload import FullRun, Workload
from traindyno.core.step_log.fields import Evaluation
from traindyno.core.suite.choices import Task
from traindyno.core.suite.suite import Measurement
from traindyno.core.verdict.judge import judge

SUITE = make_suite(examples=80_008, training={"instance": "ml.p4d.24xlarge"})
(CELL,) = SUITE.cells
SAVES = FullRun(checkpoint_every_minutes=10)
BOTH = FullRun(checkpoint_every_minutes=10, evaluate_every_steps=50)


def trial(full_run: FullRun | None, **shown: object) -> RunResult:
    """Steps of 1 s, as measured: 10,170 s of 80,008 examples in steps of 8."""
    return replace(remeasured(completed_result(CELL, 1, suite=SUITE), **shown), full_run=full_run)


def seconds(result: RunResult) -> float:
    projection = known(project_run(result))
    return projection.seconds


def once(name: str, taken: float) -> OneTimeEvent:
    return OneTimeEvent(name=name, step=30, seconds=taken)


def test_without_a_schedule_a_trial_is_projected_as_it_was() -> None:
    assert seconds(trial(None, one_time=(once("checkpoint", 6.0),))) == pytest.approx(10_170)


def test_one_checkpoint_in_a_trial_gives_its_cost() -> None:
    """6 s each ten minutes are 1 %; the trial's own one is no longer part of its overhead."""
    plain = seconds(trial(None))
    scheduled = seconds(trial(SAVES, one_time=(once("checkpoint", 6.0),)))
    assert scheduled == pytest.approx(plain + 0.01 * 10_000 - 6.0, abs=0.5)


def test_a_schedule_replaces_the_recurring_phases_of_the_trial() -> None:
    """A save of 6 s each 20 steps was 0.3 of a second; one each ten minutes and an evaluation of 5
    s in 50 remain.
    """
    saved = RecurringEvent(name="save", count=3, steps_between=20.0, seconds=6.0)
    result = trial(BOTH, recurring=(saved,), one_time=(once("evaluate", 5.0),))
    schedule = known(reschedule(result))
    assert schedule.slower == pytest.approx((1 - 0.3 + 5 / 50) * 1.01)
    assert schedule.once_seconds == 5.0


def test_an_evaluation_after_the_last_step_gives_its_cost() -> None:
    ended = trial(
        FullRun(evaluate_every_steps=100), evaluations=(Evaluation(step=60, time=9.0, metrics={}),)
    )
    schedule = known(
        reschedule(replace(ended, phases_seconds={**ended.phases_seconds, "evaluate": 4.0}))
    )
    assert schedule.slower == pytest.approx(1.04)
    assert schedule.once_seconds == 4.0


@pytest.mark.parametrize(
    "shown", [{}, {"one_time": (once("checkpoint", 6.0),)}, {"one_time": (once("evaluate", 6.0),)}]
)
def test_a_cost_shown_by_no_trial_is_unknown_and_not_zero(shown: dict[str, object]) -> None:
    result = trial(BOTH, **shown)
    assert project_run(result) is None
    suite = replace(SUITE, workload=replace(SUITE.workload, full_run=BOTH))
    verdict = judge(suite, [CELL], [result])
    expected = (
        "its trials show no checkpoint or no evaluation, whose cost the full run's schedule needs"
    )
    assert verdict.refused == {CELL.cell_id: expected}


def test_results_with_and_without_a_schedule_are_read() -> None:
    result = trial(BOTH, one_time=(once("checkpoint", 6.0),))
    document = run_result_document(result)
    assert parse_run_result(document) == result
    del document["full_run"], document["checkpoint_every_steps"]
    assert parse_run_result(document).full_run is None


@pytest.mark.parametrize(
    ("measurement", "saves", "evaluates"),
    [
        (Measurement(max_steps=200), 100, 100),
        (Measurement(max_steps=1), 1, 1),
        (Measurement(max_steps=10_000, stop_when=StopWhen(relative_half_width=0.01)), 200, 200),
        (Measurement(checkpoint_every_steps=7, evaluate_every_steps=9), 7, 9),
    ],
)
def test_a_job_does_each_step_of_the_full_run_once(
    measurement: Measurement, saves: int, evaluates: int
) -> None:
    workload = Workload(task=Task.CAUSAL_LM, examples=10, full_run=BOTH)
    job = make_suite(workload=workload, measurement=measurement).job_measurement
    assert (job.checkpoint_every_steps, job.evaluate_every_steps) == (saves, evaluates)
    plain = make_suite(measurement=measurement)
    assert plain.job_measurement == measurement
