"""Whether two cells that should learn alike do: a speed-up counts only for the same work.

Cells are compared if nothing that changes learning differs between them (global batch, learning rate, optimizer, ...);
precision, compiler, strategy and hardware may. Each trial's mean loss over the second half of the samples that both
saw is compared as a ratio. The curves agree if the whole interval lies within the tolerance, differ if all of it lies
outside, and else the matter is undecided. Where a cell has one trial, the curves are compared point by point.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import exp, log
from statistics import fmean

from traindyno.core.measurement.autocorrelation import mean_interval
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.measurement.statistics import CONFIDENCE, Interval, compare

TOLERANCE = 0.02


class ParityFinding(StrEnum):
    AGREES = "agrees"
    DIFFERS = "differs"
    UNDECIDED = "undecided"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class LossParity:
    """``ratio`` is the cell's late loss ÷ the reference's; both are None where a loss is missing."""

    reference_cell_id: str
    cell_id: str
    finding: ParityFinding
    ratio: float | None
    interval: Interval | None
    tolerance: float


def check_loss_parity(
    reference: Sequence[RunResult], other: Sequence[RunResult], *, tolerance: float = TOLERANCE
) -> LossParity:
    """Both are the measured trials of one cell each, at least one."""
    ratio, interval = _late_ratio(other, reference)
    return LossParity(
        reference_cell_id=reference[0].run.cell.cell_id,
        cell_id=other[0].run.cell.cell_id,
        finding=_judge(ratio, interval, tolerance),
        ratio=ratio,
        interval=interval,
        tolerance=tolerance,
    )


def _judge(ratio: float | None, interval: Interval | None, tolerance: float) -> ParityFinding:
    if ratio is None:
        return ParityFinding.UNKNOWN
    if interval is None:
        return ParityFinding.UNDECIDED
    low, high = 1 / (1 + tolerance), 1 + tolerance
    if low <= interval.low and interval.high <= high:
        return ParityFinding.AGREES
    return ParityFinding.DIFFERS if interval.high < low or interval.low > high else ParityFinding.UNDECIDED


def _late_ratio(other: Sequence[RunResult], reference: Sequence[RunResult]) -> tuple[float | None, Interval | None]:
    curves = [[_curve(result) for result in results] for results in (other, reference)]
    if not all(curve for side in curves for curve in side):
        return None, None
    end = min(max(curve) for side in curves for curve in side)
    late = [[_late(curve, end) for curve in side] for side in curves]
    if not all(losses and min(losses) > 0 for side in late for losses in side):
        return None, None
    if min(len(side) for side in curves) > 1:
        found = compare([fmean(losses) for losses in late[0]], [fmean(losses) for losses in late[1]])
        return found.ratio, found.interval
    return _pointwise(curves[0][0], curves[1][0], end)


def _curve(result: RunResult) -> dict[int, float]:
    """Loss by samples seen."""
    return {point.samples: point.loss for point in result.measured.loss.points} if result.measured else {}


def _late(curve: dict[int, float], end: int) -> list[float]:
    return [loss for samples, loss in curve.items() if end / 2 < samples <= end]


def _pointwise(first: dict[int, float], second: dict[int, float], end: int) -> tuple[float | None, Interval | None]:
    shared = [samples for samples in first if samples in second and end / 2 < samples <= end]
    if not shared:
        return None, None
    ratios = [log(first[samples] / second[samples]) for samples in shared]
    center = fmean(ratios)
    found = mean_interval(ratios, confidence=CONFIDENCE)
    if found is None:
        return exp(center), None
    mean, half_width = found
    return exp(center), Interval(low=exp(mean - half_width), high=exp(mean + half_width), confidence=CONFIDENCE)
