"""How much longer a run takes on capacity that fails: work that is done again, and starting
again.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, expm1
from statistics import fmean

from traindyno.core.costs.full_run import checkpoint_seconds
from traindyno.core.costs.hazard import Hazard, Restart
from traindyno.core.costs.prices import SECONDS_PER_HOUR
from traindyno.core.costs.projection import before_training_seconds, measured_attempt, project_run
from traindyno.core.costs.to_target import reach_target
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.run.record import QualityTarget

# The phases of a job that are repeated after an interruption.
STARTS = ("launch", "import", "fork", "load", "restore", "setup", "compile", "first_step")
# Interruptions expected between a start and the next checkpoint; more count as so many. At 10, one
# start in exp(10) = 22,026 reaches the checkpoint: the run takes 2,200 times its work, and hardly
# ever ends.
MOST_EXPOSURE = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Interrupted:
    """On average over many runs: how many ``interruptions``, and the factors of wall clock and of
    training time.
    """

    interruptions: float = 0.0
    wall: float = 1.0
    training: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """A run without incident, of the whole work or to a target, and what an interruption of it
    costs.

    ``segment_seconds`` are those between two checkpoints; None if no period is known. Then what
    interruptions cost in the suite's runs counts, if they resumed: a script may resume from a
    checkpoint that it writes when it is told to stop.
    """

    seconds: float
    training_seconds: float
    instance_count: int
    restart: Restart
    segment_seconds: float | None

    def at(self, hazard: Hazard, per_instance_hour: float) -> Interrupted:
        """Interruptions at the rate r are a Poisson process.

        A run starts again from its last checkpoint, or its first step.

        With segments of t hours between checkpoints and R hours to load and compile again, h hours
        of training take exp(r R) × (exp(r t) − 1) ÷ (r t) × h hours on average (Daly 2006; the time
        to write a checkpoint is in the measured rate). A run that starts again from its first step
        repeats its start with the rest: R is 0.
        """
        hours = self.training_seconds / SECONDS_PER_HOUR
        rate = per_instance_hour * self.instance_count
        waiting = self.restart.waiting if hazard.wait_seconds is None else hazard.wait_seconds
        segment = self.segment_seconds
        if not segment and hazard.resumed is not None:
            count = rate * hours
            waiting = hazard.resumed.waiting
            factor = 1 + count * hazard.resumed.training / self.training_seconds
        else:
            part = min(hours, segment / SECONDS_PER_HOUR) if segment else hours
            again = rate * self.restart.training / SECONDS_PER_HOUR if part < hours else 0.0
            working = min(rate * part, MOST_EXPOSURE)
            factor = exp(min(again, MOST_EXPOSURE - working)) * (
                expm1(working) / working if working else 1.0
            )
            count = rate * hours * factor
        added = self.training_seconds * (factor - 1) + count * waiting
        return Interrupted(interruptions=count, wall=1 + added / self.seconds, training=factor)


def mean_work(results: Sequence[RunResult], target: QualityTarget | None = None) -> Work | None:
    """Mean work of the runs that are projected, or reached the target; None without any."""
    uninterrupted = [
        (result, times)
        for result in results
        if (times := _uninterrupted(result, target)) is not None and min(times) > 0
    ]
    if not uninterrupted:
        return None
    restarts = [restart_of(result) for result, _ in uninterrupted]
    segments = [
        checkpoint
        for result, _ in uninterrupted
        if (checkpoint := checkpoint_seconds(result)) is not None
    ]
    return Work(
        seconds=fmean(times[0] for _, times in uninterrupted),
        training_seconds=fmean(times[1] for _, times in uninterrupted),
        instance_count=uninterrupted[0][0].run.cell.settings.instance_count,
        restart=Restart(
            waiting=fmean(restart.waiting for restart in restarts),
            training=fmean(restart.training for restart in restarts),
        ),
        segment_seconds=fmean(segments) if segments else None,
    )


def restart_of(result: RunResult) -> Restart:
    """A restart that takes as long as the run's own start."""
    attempt = measured_attempt(result)
    service = attempt.phase_seconds if attempt else {}
    return Restart(
        waiting=service.get("waiting", 0.0) + service.get("starting", 0.0),
        training=service.get("downloading", 0.0)
        + sum(result.phases_seconds.get(name, 0.0) for name in STARTS),
    )


def _uninterrupted(result: RunResult, target: QualityTarget | None) -> tuple[float, float] | None:
    """Wall clock and training time without interruptions."""
    if target is None:
        projection = project_run(result)
        return (projection.seconds, projection.training_seconds) if projection else None
    reached = reach_target(result, target)
    attempt = measured_attempt(result)
    if reached is None or attempt is None:
        return None
    return reached.seconds, reached.seconds - before_training_seconds(attempt.phase_seconds)
