"""Suites on spot instances: jobs that are interrupted resume from their newest checkpoint, at a
rate of their type.
"""

import random
from dataclasses import dataclass, replace
from math import exp, log

from tests.simulations.logged_runs import (
    DOWNLOADING_SECONDS,
    FIRST_STEP_SECONDS,
    STARTING_SECONDS,
    UPLOADING_SECONDS,
    Session,
    result_of,
    session_of,
)
from tests.simulations.processes import Simulated, noise
from tests.simulations.suites.logs import FIXED_SECONDS, RESTART_SECONDS, STEPS
from tests.simulations.suites.play import Played, play_suite
from tests.simulations.suites.simulated_suite import CHECKPOINT_STEPS, SAMPLES_PER_STEP, make_suite
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.run.workload import Workload
from traindyno.core.suite.choices import Purchase
from traindyno.core.suite.suite import Run, Suite

STEP_SECONDS = 5.0
FULL_STEPS = 25_000
TYPES = ("ml.p4d.24xlarge", "ml.g5.48xlarge", "ml.p3.16xlarge", "ml.g4dn.12xlarge")


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """Interruptions per hour of running, of each cell. Cells of one rate are on one type."""

    levels: tuple[float, ...]
    per_hour: tuple[float, ...]
    deviation: float = 0.01

    def suite(self) -> Suite:
        is_one_type = len(set(self.per_hour)) == 1
        count = len(self.levels)
        suite = make_suite(
            trials=5,
            matrix={"loader_workers": tuple(range(count))}
            if is_one_type
            else {"instance": TYPES[:count]},
            training={},
            purchase=Purchase.SPOT,
        )
        return replace(
            suite,
            workload=Workload(task=suite.workload.task, examples=FULL_STEPS * SAMPLES_PER_STEP),
        )

    def truth(self, cell: int) -> float:
        """An interruption costs the restart, the first step, and half of the work between two
        checkpoints.
        """
        step = STEP_SECONDS * exp(self.levels[cell] + self.deviation**2 / 2)
        again = FIRST_STEP_SECONDS + CHECKPOINT_STEPS / 2 * step
        per_second = self.per_hour[cell] / 3600
        count = per_second * FULL_STEPS * step / (1 - per_second * again)
        return FIXED_SECONDS + FULL_STEPS * step + count * (RESTART_SECONDS + again)


def play_spot(spot: Spot, name: str, number: int) -> Played:
    source = random.Random(f"spot {name} {number}")
    suite = spot.suite()

    def draw(run: Run, cell: int) -> tuple[RunResult, float | None]:
        factor = exp(spot.levels[cell] + source.gauss(0, spot.deviation))
        sessions = _sessions(source, spot.per_hour[cell], factor, f"host {run.run_id}")
        value = log((sessions[-1].end - sessions[0].begin) / STEPS)
        return _with_interruptions(result_of(run, suite, sessions), sessions), value

    verdict, best, values = play_suite(suite, f"{name} {number}", draw)
    return Played(
        verdict=verdict,
        best=best,
        truth=tuple(map(spot.truth, range(len(values)))),
        later=None if best is None else _later(spot, source, best),
        values=values,
    )


def _sessions(source: random.Random, per_hour: float, factor: float, host: str) -> list[Session]:
    """Until all steps are done: from the newest checkpoint to an interruption or the end."""
    sessions = list[Session]()
    done = 0
    begin = 0.0
    while True:
        until = source.expovariate(per_hour / 3600) if per_hour else float("inf")
        seconds = [
            factor_of_step * STEP_SECONDS * factor
            for factor_of_step in noise()(source, STEPS - done).step_seconds
        ]
        finished = _finished(seconds, until)
        is_ended = finished == len(seconds)
        if finished:
            part = Simulated(
                step_seconds=seconds[:finished], long_run_seconds=STEP_SECONDS * factor
            )
            sessions.append(
                session_of(part, first_step=done, begin=begin, host_id=host, is_ended=is_ended)
            )
        if is_ended:
            return sessions
        begin += until + RESTART_SECONDS
        done = (done + finished) // CHECKPOINT_STEPS * CHECKPOINT_STEPS


def _finished(seconds: list[float], until: float) -> int:
    passed = FIRST_STEP_SECONDS
    for count, second in enumerate(seconds):
        passed += second
        if passed > until:
            return count
    return len(seconds)


def _with_interruptions(result: RunResult, sessions: list[Session]) -> RunResult:
    """The time without instances is of a phase of its own, and is not billed."""
    (attempt,) = result.attempts
    restarts = len(sessions) - 1
    training = attempt.phase_seconds["training"] - restarts * (
        STARTING_SECONDS + DOWNLOADING_SECONDS
    )
    downloading = (1 + restarts) * DOWNLOADING_SECONDS
    waited = restarts * STARTING_SECONDS
    phases = {
        **attempt.phase_seconds,
        "training": training,
        "downloading": downloading,
        "interrupted": waited,
    }
    billed = training + downloading + UPLOADING_SECONDS
    attempt = replace(
        attempt, phase_seconds=phases, billable_seconds=billed, training_seconds=billed
    )
    return replace(result, attempts=(attempt,), billable_seconds=billed)


def _later(spot: Spot, source: random.Random, cell: int) -> float:
    factor = exp(spot.levels[cell] + source.gauss(0, spot.deviation))
    step = STEP_SECONDS * factor
    per_second = spot.per_hour[cell] / 3600
    left = FULL_STEPS * step
    seconds = FIXED_SECONDS
    while True:
        until = source.expovariate(per_second) if per_second else float("inf")
        if until >= left:
            return seconds + left
        again = min(until, FIRST_STEP_SECONDS + source.random() * CHECKPOINT_STEPS * step)
        left -= until - again
        seconds += until + RESTART_SECONDS
