"""Results of runs through the functions that read real ones, made fast: lines as text, and a pool of measured logs."""

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

from tests.simulations.logged_runs import (
    DOWNLOADING_SECONDS,
    FIRST_STEP_SECONDS,
    IMPORT_SECONDS,
    STARTING_SECONDS,
    UPLOADING_SECONDS,
    completed_attempt,
)
from tests.simulations.processes import Event, Simulated, autoregression
from tests.simulations.suites.simulated_suite import make_suite
from tests.unit.run_samples import PRICE, make_attempt, make_cell, make_run
from tests.unit.step_log_samples import START, file_name
from traindyno.core.jobs.attempt import Attempt
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.measurement.run_result import RunResult, build_run_result
from traindyno.core.step_log.line import end_line, environment_line, evaluation_line, phase_line
from traindyno.core.step_log.reader import read_step_log
from traindyno.core.suite.suite import Run, Suite

STEPS = 200
POOL = 40
QUIET = 0.02  # the CV of a step where only the level of a trial matters: 0.14 % of a run
FIXED_SECONDS = STARTING_SECONDS + DOWNLOADING_SECONDS + IMPORT_SECONDS + UPLOADING_SECONDS + FIRST_STEP_SECONDS
# From an interruption to the first step: a restart takes what a start takes.
RESTART_SECONDS = STARTING_SECONDS + DOWNLOADING_SECONDS + IMPORT_SECONDS
_STEP_LINE = (
    '{"kind": "step", "time": %r, "step": %d, "begin": %r, "end": %r, "wait_seconds": 0.0, "samples": 8,'
    ' "tokens": null, "loss": 2.0, "learning_rate": null, "peak_memory_bytes": null}'
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """What a process logs from a start to its end or an interruption; ``begin`` is in seconds after that of the job."""

    lines: tuple[str, ...]
    begin: float
    end: float


def session_of(
    simulated: Simulated,
    *,
    first_step: int = 0,
    begin: float = 0.0,
    host_id: str | None = None,
    evaluations: Sequence[tuple[int, float]] = (),
    is_ended: bool = True,
    reason: str | None = None,
) -> Session:
    """The simulated steps after a first one that takes 15 s longer. ``evaluations``: (step, accuracy)."""
    begin += START
    lines = [json.dumps(environment_line(begin, 0, 1, "algo-1", {}, host_id=host_id))]
    timed = list(_timed_lines(simulated, begin, first_step, dict(evaluations)))
    lines += [line for _, line in timed]
    end = timed[-1][0]
    if is_ended:
        lines.append(json.dumps(end_line(end, first_step + len(simulated.step_seconds), reason)))
    return Session(lines=tuple(lines), begin=begin, end=end)


def _timed_lines(
    simulated: Simulated, now: float, first_step: int, evaluated: Mapping[int, float]
) -> Iterator[tuple[float, str]]:
    """The lines of phases, steps and evaluations, each with its end."""
    stalls = {event.step: event.seconds for event in simulated.events if event.name is None}
    phases = {event.step: event for event in simulated.events if event.name is not None}
    for index, seconds in enumerate(simulated.step_seconds):
        if index in phases:
            begin, now = now, now + phases[index].seconds
            yield now, json.dumps(phase_line(phases[index].name or "", begin, now))
        step, begin = first_step + index, now
        now += seconds + stalls.get(index, 0.0) + (FIRST_STEP_SECONDS if index == 0 else 0.0)
        yield now, _STEP_LINE % (now, step, begin, now)
        if step in evaluated:
            yield now, json.dumps(evaluation_line(now, step, {"accuracy": evaluated[step]}))


def result_of(run: Run, suite: Suite, sessions: Sequence[Session], *, job_name: str = "job-a1") -> RunResult:
    """A job that completed, of one process."""
    return build_run_result(
        run,
        suite=suite,
        outcome=Outcome.COMPLETED,
        attempts=[completed_attempt(sessions[-1].end, job_name)],
        step_log=read_step_log({file_name(job=job_name, start=each.begin): each.lines for each in sessions}),
        price=replace(PRICE, purchase=suite.purchase.value),
    )


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
    phases = {"starting": STARTING_SECONDS, "downloading": DOWNLOADING_SECONDS, "training": training}
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
        events=[Event(step=each.step, seconds=each.seconds * factor, name=each.name) for each in simulated.events],
    )


def with_lost_attempts(result: RunResult, count: int, factor: float) -> RunResult:
    """Faults of the service ended so many attempts before the one that counts."""
    if not count:
        return result
    lost = [_lost_attempt(number, factor) for number in range(1, count + 1)]
    billed = (result.billable_seconds or 0.0) + sum(each.billable_seconds or 0.0 for each in lost)
    return replace(result, attempts=(*lost, *result.attempts), billable_seconds=billed)


def pooled_result(source: random.Random, run: Run, suite: Suite, factor: float, host_ids: Sequence[str]) -> RunResult:
    """One of 40 measured logs of even steps, with its steps' time × ``factor``, on these hosts."""
    template = source.choice(_pool())
    measured, environment = template.measured, template.environment
    assert measured is not None and measured.throughput is not None and environment is not None
    throughput, steady = measured.throughput, measured.steady_seconds or 0.0
    (attempt,) = template.attempts
    longer = (factor - 1) * (attempt.phase_seconds["training"] - IMPORT_SECONDS - FIRST_STEP_SECONDS)
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
    source = random.Random("pool of quiet logs")
    runs, suite = [], make_suite(trials=1, matrix={"loader_workers": (0,)}, training={})
    for _ in range(POOL):
        steps = autoregression(source, STEPS, correlation=0.0, deviation=QUIET)
        session = session_of(Simulated(step_seconds=steps, long_run_seconds=1.0))
        runs.append(result_of(make_run(make_cell()), suite, [session]))
    return tuple(runs)
