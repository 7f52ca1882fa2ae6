"""Results of runs, made fast: a pool of measured logs."""

import random
from collections.abc import Sequence
from dataclasses import replace
from functools import cache

from tests.simulations.logged_runs import (
    DOWNLOADING_SECONDS,
    FIRST_STEP_SECONDS,
    IMPORT_SECONDS,
    STARTING_SECONDS,
    UPLOADING_SECONDS,
    result_of,
    session_of,
)
from tests.simulations.processes import Event, Simulated, noise
from tests.simulations.suites.simulated_suite import make_suite
from tests.unit.run_samples import PRICE, make_attempt, make_cell, make_run
from traindyno.core.jobs.attempt import Attempt
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.measurement.run_result import RunResult, build_run_result
from traindyno.core.suite.suite import Run, Suite

STEPS = 200
POOL = 40
FIXED_SECONDS = (
    STARTING_SECONDS + DOWNLOADING_SECONDS + IMPORT_SECONDS + UPLOADING_SECONDS + FIRST_STEP_SECONDS
)
# From an interruption to the first step: a restart takes what a start takes.
RESTART_SECONDS = STARTING_SECONDS + DOWNLOADING_SECONDS + IMPORT_SECONDS


def lost_result(run: Run, suite: Suite, factor: float) -> RunResult:
    """A fault of the service ended the job, on average in the middle of its steps."""
    attempt = replace(_lost_attempt(1, factor), outcome=Outcome.INTERNAL_ERROR, error=None)
    return build_run_result(
        run,
        suite=suite,
        outcome=Outcome.INTERNAL_ERROR,
        attempts=[attempt],
        step_log=None,
        price=PRICE,
        message="a fault of the service",
    )


def _lost_attempt(number: int, factor: float) -> Attempt:
    training = IMPORT_SECONDS + FIRST_STEP_SECONDS + STEPS * factor / 2
    phases = {
        "starting": STARTING_SECONDS,
        "downloading": DOWNLOADING_SECONDS,
        "training": training,
    }
    return make_attempt(
        number=number,
        job_name=f"lost-a{number}",
        outcome=None,
        error="ServiceFault",
        billable_seconds=DOWNLOADING_SECONDS + training,
        phase_seconds=phases,
    )


def on_speed(simulated: Simulated, factor: float) -> Simulated:
    """All of its times are longer by the factor."""
    return replace(
        simulated,
        step_seconds=[seconds * factor for seconds in simulated.step_seconds],
        long_run_seconds=simulated.long_run_seconds * factor,
        events=[
            Event(step=event.step, seconds=event.seconds * factor, name=event.name)
            for event in simulated.events
        ],
    )


def with_lost_attempts(result: RunResult, count: int, factor: float) -> RunResult:
    """Faults of the service ended so many attempts before the one that counts."""
    if not count:
        return result
    lost = [_lost_attempt(number, factor) for number in range(1, count + 1)]
    billed = (result.billable_seconds or 0.0) + sum(
        attempt.billable_seconds or 0.0 for attempt in lost
    )
    return replace(result, attempts=(*lost, *result.attempts), billable_seconds=billed)


def pooled_result(
    source: random.Random, run: Run, suite: Suite, factor: float, host_ids: Sequence[str]
) -> RunResult:
    """One of 40 measured logs of even steps, with its steps' time × ``factor``, on these hosts."""
    template = source.choice(_pool())
    measured = template.measured
    environment = template.environment
    assert measured is not None and measured.throughput is not None and environment is not None
    throughput = measured.throughput
    steady = measured.steady_seconds or 0.0
    (attempt,) = template.attempts
    longer = (factor - 1) * (
        attempt.phase_seconds["training"] - IMPORT_SECONDS - FIRST_STEP_SECONDS
    )
    phases = {**attempt.phase_seconds, "training": attempt.phase_seconds["training"] + longer}
    billed = (attempt.billable_seconds or 0.0) + longer
    attempt = replace(attempt, phase_seconds=phases, billable_seconds=billed)
    return replace(
        template,
        run=run,
        examples=suite.workload.examples,
        attempts=(attempt,),
        billable_seconds=billed,
        price=replace(PRICE, purchase=suite.purchase.value),
        environment=replace(environment, host_ids=tuple(host_ids)),
        measured=replace(
            measured,
            steady_seconds=steady * factor,
            throughput=replace(
                throughput,
                seconds=throughput.seconds * factor,
                samples_per_second=throughput.samples_per_second / factor,
                steps_per_second=throughput.steps_per_second / factor,
            ),
        ),
    )


@cache
def _pool() -> tuple[RunResult, ...]:
    """Only the level of a trial matters there: a step's CV of 2 % is 0.14 % of a run."""
    source = random.Random("pool of quiet logs")
    runs = []
    suite = make_suite(trials=1, matrix={"loader_workers": (0,)}, training={})
    for _ in range(POOL):
        runs.append(result_of(make_run(make_cell()), suite, [session_of(noise()(source, STEPS))]))
    return tuple(runs)
