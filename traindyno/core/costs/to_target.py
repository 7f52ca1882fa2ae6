"""What a run took and cost until an evaluation reached a target: time and cost to quality."""

from dataclasses import dataclass
from decimal import Decimal
from math import isfinite

from traindyno.core.costs.projection import known_cost_usd, measured_attempt, read_job_time
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.run.record import QualityTarget
from traindyno.core.step_log.fields import Evaluation
from traindyno.core.suite.choices import Quality


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """The first evaluation that reached the target, after ``step`` steps.

    ``seconds`` is wall clock from the creation of the job to the end of that evaluation, as MLPerf
    and DAWNBench count the time to quality, without what interruptions lost: they occur at a rate
    (see hazard.py). Nothing is interpolated between evaluations: ``since_seconds`` is the time from
    the one before, or from the log's begin. ``usd`` is what SageMaker bills until then; None where
    the price or the billed share is unknown.
    """

    step: int
    seconds: float
    usd: Decimal | None
    since_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class JobClock:
    """The time that had passed and was billed at a line of the job's log.

    ``logged`` is in seconds after the log's begin. ``billable_share`` is of the training time; None
    where it is unknown.
    """

    before_training_seconds: float
    downloading_seconds: float
    billable_share: float | None
    instance_count: int
    usd_per_instance_hour: Decimal | None

    def seconds(self, logged: float) -> float:
        """Wall clock from the creation of the job."""
        return self.before_training_seconds + logged

    def usd(self, logged: float) -> Decimal | None:
        if self.billable_share is None:
            return None
        billed = (self.downloading_seconds + logged) * self.billable_share
        return known_cost_usd(billed, self.instance_count, self.usd_per_instance_hour)


def job_clock(result: RunResult) -> JobClock | None:
    """The clock of the measured job; None where its times are unknown."""
    attempt = measured_attempt(result)
    job_time = None if attempt is None else read_job_time(attempt)
    if attempt is None or job_time is None:
        return None
    return JobClock(
        before_training_seconds=job_time.before_training,
        downloading_seconds=attempt.phase_seconds.get("downloading", 0.0),
        billable_share=job_time.billable_share,
        instance_count=result.run.cell.settings.instance_count,
        usd_per_instance_hour=result.price.usd_per_instance_hour,
    )


def reach_target(result: RunResult, target: QualityTarget) -> Reached | None:
    """The first evaluation that reached the target.

    None where none reached it, or the times of the job are unknown.
    """
    measured = result.measured
    clock = job_clock(result)
    if measured is None or clock is None:
        return None
    before = 0.0
    for evaluation, value in evaluated(result, target.quality):
        logged = evaluation.time - measured.job.began_at
        # what other sessions lost is before the measured one, and so before its evaluations
        logged -= (
            measured.job.lost_seconds
            if logged >= measured.job.lost_seconds + measured.job.kept_seconds
            else 0.0
        )
        if target.is_reached(value):
            return Reached(
                step=evaluation.step,
                seconds=clock.seconds(logged),
                usd=clock.usd(logged),
                since_seconds=max(0.0, logged - before),
            )
        before = logged
    return None


def evaluated(result: RunResult, quality: Quality) -> list[tuple[Evaluation, float]]:
    """The run's evaluations that measured the quality, each with its value."""
    values = (
        (evaluation, evaluation.metrics.get(quality.value))
        for evaluation in (result.measured.evaluations if result.measured else ())
    )
    return [(evaluation, value) for evaluation, value in values if value is not None]


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningPoint:
    """Quality of a model at one step.

    ``seconds`` are wall clock from the creation of the job, ``usd`` what was billed by then; None
    if unknown.
    """

    step: int
    seconds: float | None
    usd: float | None
    value: float


def training_curve(result: RunResult) -> tuple[LearningPoint, ...]:
    """The losses of training that are finite."""
    points = result.measured.loss.finite_points if result.measured else ()
    return tuple(_point(result, point.step, point.seconds, point.loss) for point in points)


def evaluation_curve(result: RunResult, quality: Quality) -> tuple[LearningPoint, ...]:
    """The values of evaluations that are finite."""
    began_at = result.measured.job.began_at if result.measured else 0.0
    return tuple(
        _point(result, evaluation.step, evaluation.time - began_at, value)
        for evaluation, value in evaluated(result, quality)
        if isfinite(value)
    )


def _point(result: RunResult, step: int, logged: float, value: float) -> LearningPoint:
    clock = job_clock(result)
    if clock is None:
        return LearningPoint(step=step, seconds=None, usd=None, value=value)
    usd = clock.usd(logged)
    return LearningPoint(
        step=step,
        seconds=clock.seconds(logged),
        usd=None if usd is None else float(usd),
        value=value,
    )
