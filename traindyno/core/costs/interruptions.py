"""How much longer a run takes on capacity that is interrupted: work that is done again, and starting again."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import exp, expm1

from traindyno.core.costs.prices import SECONDS_PER_HOUR
from traindyno.core.costs.projection import Projection, measured_attempt, project_run
from traindyno.core.costs.to_target import reach_target
from traindyno.core.jobs.attempt import Attempt
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.step_log.content import Evaluation
from traindyno.core.suite.goal import QualityTarget
from traindyno.core.suite.pricing import SpotTerms

# The phases of a job that are repeated after an interruption.
STARTS = ("launch", "import", "load", "restore", "setup", "compile", "first_step")
# Interruptions expected between a start and the next checkpoint. At 10, one start in exp(10) = 22,026 reaches the
# checkpoint: such a run hardly ever ends, and its mean time is not a forecast.
MOST_EXPOSURE = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Restart:
    """Seconds from an interruption to the next step: ``waiting`` for capacity and starting are not billed."""

    waiting: float
    training: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Delay:
    """The average over many runs: training takes ``factor`` times as long, with so many ``interruptions``."""

    factor: float
    interruptions: float
    waiting_seconds: float


def restart_of(result: RunResult) -> Restart:
    """The same as the run's own start."""
    attempt = measured_attempt(result)
    service = attempt.phase_seconds if attempt else {}
    return Restart(
        waiting=service.get("waiting", 0.0) + service.get("starting", 0.0),
        training=service.get("downloading", 0.0) + sum(result.phases_seconds.get(name, 0.0) for name in STARTS),
    )


def expect_delay(terms: SpotTerms, training_seconds: float, restart: Restart) -> Delay | None:
    """The delay of a run with this training time, which starts again from its last checkpoint, or from its first step.

    Interruptions at the rate r are a Poisson process. With segments of t hours between checkpoints and R hours to load
    and compile again, h hours of training take exp(r R) × (exp(r t) − 1) ÷ (r t) × h hours on average (Daly 2006; the
    time to write a checkpoint is in the measured rate). None where r × (R + t) is above ``MOST_EXPOSURE``.
    """
    rate, hours = terms.interruptions_per_hour, training_seconds / SECONDS_PER_HOUR
    segment = hours if terms.checkpoint_hours is None else min(hours, terms.checkpoint_hours)
    restarting, working = rate * restart.training / SECONDS_PER_HOUR, rate * segment
    if restarting + working > MOST_EXPOSURE:
        return None
    factor = exp(restarting) * (expm1(working) / working if working > 0 else 1.0)
    interruptions = rate * hours * factor
    return Delay(factor=factor, interruptions=interruptions, waiting_seconds=interruptions * restart.waiting)


def with_interruptions(result: RunResult, terms: SpotTerms, target: QualityTarget | None) -> RunResult | None:
    """The run as it would be on average on such capacity: its projection, or its time to the ``target``, is longer.

    The result itself where nothing was measured that could be projected. None where the run would hardly ever end.
    """
    projection = project_run(result)
    if projection is None or result.samples_per_second is None:
        return result
    reached = reach_target(result, target) if target is not None else None
    if reached is None:
        return _with_longer_work(result, terms, projection)
    before = projection.before_training_seconds
    return _with_later_evaluations(result, terms, reached.seconds - before)


def _with_longer_work(result: RunResult, terms: SpotTerms, projection: Projection) -> RunResult | None:
    """Repeated work counts as further examples."""
    training = projection.seconds - projection.overhead_seconds + projection.training_overhead_seconds
    delay = expect_delay(terms, training, restart_of(result))
    if delay is None:
        return None
    assert result.samples_per_second is not None, "only measured runs are projected"
    repeated = round(training * (delay.factor - 1) * result.samples_per_second)
    return replace(_waiting_longer(result, delay), examples=result.examples + repeated)


def _with_later_evaluations(result: RunResult, terms: SpotTerms, training_seconds: float) -> RunResult | None:
    """``training_seconds``: until the target is reached."""
    measured = result.measured
    assert measured is not None, "a target is reached by a measured run"
    assert measured.began_at is not None, "a target is reached by a run of a known begin"
    delay = expect_delay(terms, training_seconds, restart_of(result))
    if delay is None:
        return None
    evaluations = _later(measured.evaluations, measured.began_at, delay.factor)
    return replace(_waiting_longer(result, delay), measured=replace(measured, evaluations=evaluations))


def _later(evaluations: Sequence[Evaluation], began_at: float, factor: float) -> tuple[Evaluation, ...]:
    return tuple(replace(each, time=began_at + (each.time - began_at) * factor) for each in evaluations)


def _waiting_longer(result: RunResult, delay: Delay) -> RunResult:
    """Adds the delay to the phases of the measured job before its training."""
    measured = measured_attempt(result)
    attempts = (_started_later(each, delay) if each is measured else each for each in result.attempts)
    return replace(result, attempts=tuple(attempts))


def _started_later(attempt: Attempt, delay: Delay) -> Attempt:
    phases = {**attempt.phase_seconds, "starting": attempt.phase_seconds.get("starting", 0.0) + delay.waiting_seconds}
    return replace(attempt, phase_seconds=phases)
