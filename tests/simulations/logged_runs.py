"""Simulated runs through the functions that read real ones: step log, reader, result, projection."""

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from math import exp

from tests.simulations.processes import Process, Simulated, with_stalls
from tests.unit.run_samples import PRICE, make_attempt, make_cell, make_run, make_suite
from tests.unit.step_log_samples import START, file_name
from traindyno.core.costs.projection import Projection, project_run
from traindyno.core.jobs.attempt import Attempt
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.measurement.run_result import RunResult, build_run_result
from traindyno.core.statistics.estimates import NO_RANGE, Range
from traindyno.core.step_log.line import end_line, environment_line, phase_line, step_line
from traindyno.core.step_log.reader import read_step_log
from traindyno.core.verdict.undecided import find_undecided

EXAMPLES = 1_000_000
SAMPLES_PER_STEP = 8
FIRST_STEP_SECONDS = 15.0
STARTING_SECONDS, DOWNLOADING_SECONDS, IMPORT_SECONDS, UPLOADING_SECONDS = 90.0, 30.0, 12.0, 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcomes:
    """Shares of the repetitions of one scenario. ``undecided``: the rate's range for stalls seen once has the truth."""

    within: float
    undecided: float
    not_steady: float
    wrong: float


def run_result_of(simulated: Simulated, *, trial: int = 1, cell_id: str = "0000000a") -> RunResult:
    """A job of one process: the simulated steps after a first one that takes 15 s longer."""
    lines = [json.dumps(line) for line in log_lines(simulated)]
    return build_run_result(
        make_run(make_cell(cell_id), trial),
        suite=make_suite(examples=EXAMPLES),
        outcome=Outcome.COMPLETED,
        attempts=[completed_attempt(json.loads(lines[-1])["time"])],
        step_log=read_step_log({file_name(): lines}),
        price=PRICE,
    )


def completed_attempt(
    last_logged: float, job_name: str = "job-a1", *, starting_seconds: float = STARTING_SECONDS
) -> Attempt:
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


def log_lines(simulated: Simulated) -> Iterator[dict[str, object]]:
    logged = {event.step: event for event in simulated.events if event.name is not None}
    now = START
    yield environment_line(now, 0, 1, "algo-1", {})
    for step, seconds in enumerate(with_stalls(simulated)):
        if step in logged:
            event = logged[step]
            yield phase_line(event.name or "", now, now + event.seconds)
            now += event.seconds
        end = now + seconds + (FIRST_STEP_SECONDS if step == 0 else 0.0)
        yield step_line(step=step, begin=now, end=end, wait_seconds=0.0, samples=SAMPLES_PER_STEP)
        now = end
    yield end_line(now, len(simulated.step_seconds))


def true_seconds(simulated: Simulated) -> float:
    """Wall clock of a run over all examples: what is paid once, then steps that take what they take in the long run."""
    one_time = sum(event.seconds for event in simulated.events) if simulated.has_one_time_events else 0.0
    fixed = STARTING_SECONDS + DOWNLOADING_SECONDS + IMPORT_SECONDS + UPLOADING_SECONDS + FIRST_STEP_SECONDS
    return fixed + one_time + EXAMPLES / SAMPLES_PER_STEP * simulated.long_run_seconds


def judge(process: Process, sources: Iterator[random.Random], *, steps: int, tolerance: float = 0.02) -> Outcomes:
    """How often rate and projection are right, or within what the run leaves open, or the run is called not steady."""
    within = undecided = not_steady = count = 0
    for source in sources:
        simulated = process(source, steps)
        result = run_result_of(simulated)
        measured, projection = result.measured, project_run(result)
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
    return Outcomes(within=within / count, undecided=undecided / count, not_steady=not_steady / count, wrong=wrong)


def _is_within(
    result: RunResult, projection: Projection, simulated: Simulated, tolerance: float, reach: Range = NO_RANGE
) -> bool:
    rate = (result.samples_per_second or 0.0) * simulated.long_run_seconds / SAMPLES_PER_STEP
    found = ((rate, reach.inverse()), (projection.seconds / true_seconds(simulated), reach))
    return all(
        value * exp(each.low) <= 1 + tolerance and value * exp(each.high) >= 1 - tolerance for value, each in found
    )
