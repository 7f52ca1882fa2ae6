"""How a run learned: its training loss and its evaluations by step, by time and by cost."""

from dataclasses import dataclass
from math import isfinite

from traindyno.core.costs.to_target import job_clock
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.suite.choices import Quality


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningPoint:
    """``seconds`` are wall clock from the creation of the job, ``usd`` what was billed by then; None if unknown."""

    step: int
    seconds: float | None
    usd: float | None
    value: float


def training_curve(result: RunResult) -> tuple[LearningPoint, ...]:
    """Only losses that are finite."""
    points = result.measured.loss.finite_points if result.measured else ()
    return tuple(_point(result, point.step, point.seconds, point.loss) for point in points)


def evaluation_curve(result: RunResult, quality: Quality) -> tuple[LearningPoint, ...]:
    """Only values that are finite."""
    measured = result.measured
    if measured is None:
        return ()
    found = [(each, each.metrics.get(quality.value)) for each in measured.evaluations]
    return tuple(
        _point(result, each.step, each.time - measured.began_at, value)
        for each, value in found
        if value is not None and isfinite(value)
    )


def _point(result: RunResult, step: int, logged: float, value: float) -> LearningPoint:
    clock = job_clock(result)
    if clock is None:
        return LearningPoint(step=step, seconds=None, usd=None, value=value)
    usd = clock.usd(logged)
    return LearningPoint(step=step, seconds=clock.seconds(logged), usd=None if usd is None else float(usd), value=value)
