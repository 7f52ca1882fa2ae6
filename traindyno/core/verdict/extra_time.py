"""What a cell's whole work takes beyond one run without incident: its own failures, and capacity
that fails.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log, log1p

from traindyno.core.costs.hazard import Hazard, HazardKey, UnevenFaults, measure_success
from traindyno.core.costs.interruptions import mean_work
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.verdict.quantity import PAID_AGAIN, Quantity, ToTarget, projected_seconds
from traindyno.figures.estimates import NO_RANGE, Range, range_to


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtraTime:
    """The factor by which a quantity is larger, as a logarithm, with the variance of the cell's own
    failures.

    ``interruptions`` is the range of what is unknown of the rate at which its ``capacity`` fails,
    ``faults`` what is added if faults that hit the cell more than others of its type are its own.
    """

    log_factor: float = 0.0
    variance: float = 0.0
    interruptions: Range = NO_RANGE
    faults: Range = NO_RANGE
    capacity: HazardKey | None = None

    @property
    def range(self) -> Range:
        return self.interruptions.plus(self.faults)

    def range_against(self, other: "ExtraTime") -> Range:
        """Cells on the same capacity are interrupted at the same rate, whichever it is."""
        if self.capacity is not None and self.capacity == other.capacity:
            return self.faults.plus(other.faults.inverse())
        return self.range.plus(other.range.inverse())


def extra_time(
    quantity: Quantity,
    measured: Sequence[RunResult],
    others: Sequence[RunResult],
    hazard: Hazard | None,
    uneven: UnevenFaults | None,
) -> ExtraTime:
    """Nothing is added to quantities that are not paid again, such as rates.

    Own failures: 1 ÷ the success rate, which is binomial. The variance of its logarithm is (1 - p)
    ÷ (n p) by the delta method, with p by Jeffreys.
    """
    target = quantity.target if isinstance(quantity, ToTarget) else None
    if not measured or (target is None and quantity not in PAID_AGAIN):
        return ExtraTime()
    success = measure_success([*measured, *others])
    failures = log(success.attempts / success.successes) if success.successes else 0.0
    p = (success.successes + 0.5) / (success.attempts + 1)
    work = mean_work(measured, target)
    low = middle = high = 0.0
    if hazard is not None and work is not None:
        is_wall = quantity is projected_seconds or (
            isinstance(quantity, ToTarget) and not quantity.is_money
        )
        found = (
            work.at(hazard, rate) for rate in (hazard.low, hazard.per_instance_hour, hazard.high)
        )
        low, middle, high = (log(each.wall if is_wall else each.training) for each in found)
    return ExtraTime(
        log_factor=failures + middle,
        variance=(1 - p) / (success.attempts * p) if failures else 0.0,
        interruptions=Range(low=min(0.0, low - middle), high=max(0.0, high - middle)),
        faults=range_to(log1p(uneven.count / success.attempts))
        if uneven and success.successes
        else NO_RANGE,
        capacity=hazard.key if hazard else None,
    )
