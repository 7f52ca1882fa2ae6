"""Simulated runs through the functions that read real ones: step log, reader, result,
projection.
"""

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp

from tests.simulations.processes import Process, Simulated, with_stalls
from tests.unit.run_samples import PRICE, make_attempt, make_cell, make_run, make_suite
from tests.unit.step_log_samples import START, file_name
from traindyno.core.costs.projection import Projection, project_run
from traindyno.core.jobs.attempt import Attempt
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.measurement.run_result import RunResult, build_run_result
from traindyno.core.step_log.line import end_line, environment_line, evaluation_line, phase_line
from traindyno.core.step_log.reader import read_step_log
from traindyno.core.suite.suite import Run, Suite
from traindyno.core.verdict.undecided import find_undecided
from traindyno.figures.beyond import NO_RANGE, Range

EXAMPLES = 1_000_000
SAMPLES_PER_STEP = 8
FIRST_STEP_SECONDS = 15.0
STARTING_SECONDS = 90.0
DOWNLOADING_SECONDS = 30.0
IMPORT_SECONDS = 12.0
UPLOADING_SECONDS = 20.0

_STEP_LINE = (
    '{"kind": "step", "time": %r, "step": %d, "begin": %r, "end": %r, "wait_seconds": 0.0, '
    '"samples": 8, "tokens": null, "loss": 2.0, "learning_rate": null, "peak_memory_bytes": null}'
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcomes:
    """Shares of the repetitions of one scenario.

    ``undecided``: the rate's range for stalls seen once has the truth.
    """

    within: float
    undecided: float
    not_steady: float
    wrong: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """What a process logs from a start to its end or an interruption; ``begin`` is in seconds after
    that of the job.
    """

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
    """The simulated steps after a first one that takes 15 s longer.

    ``evaluations``: (step, accuracy).
    """
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
    for index, seconds in enumerate(with_stalls(simulated)):
        for event in simulated.events:
            if event.step == index and event.name is not None:
                begin = now
                now = now + event.seconds
                yield now, json.dumps(phase_line(event.name, begin, now))
        step = first_step + index
        begin = now
        now += seconds + (FIRST_STEP_SECONDS if index == 0 else 0.0)
        yield now, _STEP_LINE % (now, step, begin, now)
        if step in evaluated:
            yield now, json.dumps(evaluation_line(now, step, {"accuracy": evaluated[step]}))


def result_of(
    run: Run,
    suite: Suite,
    sessions: Sequence[Session],
    *,
    job_name: str = "job-a1",
    starting_seconds: float = STARTING_SECONDS,
) -> RunResult:
    """A job that completed, of one process."""
    return build_run_result(
        run,
        suite=suite,
        outcome=Outcome.COMPLETED,
        attempts=[_completed_attempt(sessions[-1].end, job_name, starting_seconds)],
        step_log=read_step_log(
            {file_name(job=job_name, start=session.begin): session.lines for session in sessions}
        ),
        price=replace(PRICE, purchase=suite.purchase.value),
    )


def _completed_attempt(last_logged: float, job_name: str, starting_seconds: float) -> Attempt:
    """An attempt whose log begins at START and ends at ``last_logged``."""
    training = last_logged - START + IMPORT_SECONDS
    phases = {
        "starting": starting_seconds,
        "downloading": DOWNLOADING_SECONDS,
        "training": training,
        "uploading": UPLOADING_SECONDS,
    }
    billed = training + DOWNLOADING_SECONDS + UPLOADING_SECONDS
    return make_attempt(phase_seconds=phases, billable_seconds=billed, job_name=job_name)


def run_result_of(simulated: Simulated, *, trial: int = 1) -> RunResult:
    return result_of(
        make_run(make_cell(), trial), make_suite(examples=EXAMPLES), [session_of(simulated)]
    )


def true_seconds(simulated: Simulated) -> float:
    """Wall clock of a run over all examples: what is paid once, then steps that take what they take
    in the long run.
    """
    one_time = (
        sum(event.seconds for event in simulated.events) if simulated.has_one_time_events else 0.0
    )
    fixed = (
        STARTING_SECONDS
        + DOWNLOADING_SECONDS
        + IMPORT_SECONDS
        + UPLOADING_SECONDS
        + FIRST_STEP_SECONDS
    )
    return fixed + one_time + EXAMPLES / SAMPLES_PER_STEP * simulated.long_run_seconds


def judge(
    process: Process, sources: Iterator[random.Random], *, steps: int, tolerance: float = 0.02
) -> Outcomes:
    """How often rate and projection are right, or within what the run leaves open, or the run is
    called not steady.
    """
    within = undecided = not_steady = count = 0
    for source in sources:
        simulated = process(source, steps)
        result = run_result_of(simulated)
        measured = result.measured
        projection = project_run(result)
        assert measured is not None
        count += 1
        if not measured.steady_state.is_reached:
            not_steady += 1
        elif projection is not None and _is_within(result, projection, simulated, tolerance):
            within += 1
        elif projection is not None:
            stalls = find_undecided([measured]).stalls
            undecided += _is_within(result, projection, simulated, tolerance, stalls)
    wrong = (count - within - undecided - not_steady) / count
    return Outcomes(
        within=within / count,
        undecided=undecided / count,
        not_steady=not_steady / count,
        wrong=wrong,
    )


def _is_within(
    result: RunResult,
    projection: Projection,
    simulated: Simulated,
    tolerance: float,
    reach: Range = NO_RANGE,
) -> bool:
    rate = (result.samples_per_second or 0.0) * simulated.long_run_seconds / SAMPLES_PER_STEP
    ratios = ((rate, reach.inverse()), (projection.seconds / true_seconds(simulated), reach))
    return all(
        value * exp(scatter.low) <= 1 + tolerance and value * exp(scatter.high) >= 1 - tolerance
        for value, scatter in ratios
    )
