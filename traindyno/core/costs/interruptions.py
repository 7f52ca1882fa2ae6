"""How much longer a run takes on capacity that fails: work that is done again, and starting again."""

from dataclasses import dataclass, replace
from math import exp, expm1

from traindyno.core.costs.full_run import checkpoint_seconds
from traindyno.core.costs.hazard import Hazard, Restart
from traindyno.core.costs.prices import SECONDS_PER_HOUR
from traindyno.core.costs.projection import before_training_seconds, measured_attempt, project_run
from traindyno.core.costs.to_target import reach_target
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.suite.goal import QualityTarget

# The phases of a job that are repeated after an interruption.
STARTS = ("launch", "import", "fork", "load", "restore", "setup", "compile", "first_step")
# Interruptions expected between a start and the next checkpoint. At 10, one start in exp(10) = 22,026 reaches the
# checkpoint: such a run hardly ever ends, and its mean time is not a forecast.
MOST_EXPOSURE = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Delay:
    """The average over many runs, with so many ``interruptions``: seconds that are added."""

    interruptions: float
    training_seconds: float
    waiting_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Exposure:
    """A run without incident, of the whole work or to a target, and what an interruption of it costs.

    ``segment_seconds`` are those between two checkpoints; None if no period is known. Then what interruptions cost in
    the suite's runs counts, if they resumed: a script may resume from a checkpoint that it writes when it is told to
    stop.
    """

    seconds: float
    training_seconds: float
    instance_count: int
    restart: Restart
    segment_seconds: float | None

    def delay(self, hazard: Hazard) -> Delay | None:
        """None if it would hardly ever end."""
        rate = hazard.per_instance_hour * self.instance_count
        if self.segment_seconds is None and hazard.resumed is not None:
            return _repeated(hazard.resumed, rate * self.training_seconds / SECONDS_PER_HOUR)
        segment = self.segment_seconds
        if segment is None and hazard.checkpoint_hours is not None:
            segment = hazard.checkpoint_hours * SECONDS_PER_HOUR
        waited = self.restart.waiting if hazard.wait_seconds is None else hazard.wait_seconds
        return expect_delay(rate, self.training_seconds, replace(self.restart, waiting=waited), segment)

    def wall_factor(self, delay: Delay) -> float:
        return 1 + (delay.training_seconds + delay.waiting_seconds) / self.seconds

    def training_factor(self, delay: Delay) -> float:
        return 1 + delay.training_seconds / self.training_seconds


def restart_of(result: RunResult) -> Restart:
    """The same as the run's own start."""
    attempt = measured_attempt(result)
    service = attempt.phase_seconds if attempt else {}
    return Restart(
        waiting=service.get("waiting", 0.0) + service.get("starting", 0.0),
        training=service.get("downloading", 0.0) + sum(result.phases_seconds.get(name, 0.0) for name in STARTS),
    )


def expect_delay(
    interruptions_per_hour: float, training_seconds: float, restart: Restart, segment_seconds: float | None = None
) -> Delay | None:
    """The delay of a run with this training time, which starts again from its last checkpoint, or from its first step.

    Interruptions at the rate r are a Poisson process. With segments of t hours between checkpoints and R hours to load
    and compile again, h hours of training take exp(r R) × (exp(r t) − 1) ÷ (r t) × h hours on average (Daly 2006; the
    time to write a checkpoint is in the measured rate). A run that starts again from its first step repeats its start
    with the rest of the training: R is 0. None where r × (R + t) is above ``MOST_EXPOSURE``.
    """
    rate, hours = interruptions_per_hour, training_seconds / SECONDS_PER_HOUR
    segment = hours if segment_seconds is None else min(hours, segment_seconds / SECONDS_PER_HOUR)
    restarting = rate * restart.training / SECONDS_PER_HOUR if segment < hours else 0.0
    working = rate * segment
    if restarting + working > MOST_EXPOSURE:
        return None
    factor = exp(restarting) * (expm1(working) / working if working > 0 else 1.0)
    interruptions = rate * hours * factor
    return Delay(
        interruptions=interruptions,
        training_seconds=training_seconds * (factor - 1),
        waiting_seconds=interruptions * restart.waiting,
    )


def exposure_of(result: RunResult, target: QualityTarget | None = None) -> Exposure | None:
    """None if the run is not projected, or takes no time."""
    found = _uninterrupted(result, target)
    if found is None or min(found) <= 0:
        return None
    return Exposure(
        seconds=found[0],
        training_seconds=found[1],
        instance_count=result.run.cell.settings.instance_count,
        restart=restart_of(result),
        segment_seconds=checkpoint_seconds(result),
    )


def _repeated(seen: Restart, interruptions: float) -> Delay:
    return Delay(
        interruptions=interruptions,
        training_seconds=interruptions * seen.training,
        waiting_seconds=interruptions * seen.waiting,
    )


def _uninterrupted(result: RunResult, target: QualityTarget | None) -> tuple[float, float] | None:
    """Wall clock and training time."""
    if target is None:
        projection = project_run(result)
        return (projection.seconds, projection.training_seconds) if projection else None
    reached, attempt = reach_target(result, target), measured_attempt(result)
    if reached is None or attempt is None:
        return None
    return reached.seconds, reached.seconds - before_training_seconds(attempt.phase_seconds)
