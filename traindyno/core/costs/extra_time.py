"""What a cell's whole work takes beyond one run without incident: its own failures, and capacity
that fails.
"""

from collections.abc import Mapping, Sequence
from math import log, log1p

from traindyno.core.costs.hazard import Hazard, UnevenFaults, measure_success
from traindyno.core.costs.interruptions import mean_work
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.run.record import QualityTarget
from traindyno.figures.beyond import NO_RANGE, ExtraTime, Range, range_to
from traindyno.figures.table import PAID_AGAIN, TO_TARGET, FigureColumn


def extra_times(
    measured: Sequence[RunResult],
    others: Sequence[RunResult],
    *,
    hazard: Hazard | None = None,
    uneven_faults: UnevenFaults | None = None,
    target: QualityTarget | None = None,
) -> Mapping[FigureColumn, ExtraTime]:
    """By column; nothing is added to what is not paid again, such as rates.

    Own failures: 1 ÷ the success rate, which is binomial. The variance of its logarithm is (1 - p)
    ÷ (n p) by the delta method, with p by Jeffreys.
    """
    if not measured:
        return {}
    success = measure_success([*measured, *others])
    failures = log(success.attempts / success.successes) if success.successes else 0.0
    p = (success.successes + 0.5) / (success.attempts + 1)
    faults = NO_RANGE
    if uneven_faults and success.successes:
        faults = range_to(log1p(uneven_faults.count / success.attempts))
    times = {}
    for column in (*PAID_AGAIN, *(TO_TARGET if target else ())):
        low, middle, high = _interrupted(measured, hazard, column, target)
        times[column] = ExtraTime(
            log_factor=failures + middle,
            variance=(1 - p) / (success.attempts * p) if failures else 0.0,
            interruptions=Range(low=min(0.0, low - middle), high=max(0.0, high - middle)),
            faults=faults,
            capacity=hazard.key if hazard else None,
        )
    return times


def _interrupted(
    measured: Sequence[RunResult],
    hazard: Hazard | None,
    column: FigureColumn,
    target: QualityTarget | None,
) -> list[float]:
    """The logarithm of the factor at the lowest rate of interruptions, the likely and the highest
    one.
    """
    work = mean_work(measured, target if column in TO_TARGET else None) if hazard else None
    if hazard is None or work is None:
        return [0.0, 0.0, 0.0]
    rates = (hazard.low, hazard.per_instance_hour, hazard.high)
    times = [work.at(hazard, rate) for rate in rates]
    # the wall clock takes the waiting too
    return [log(time.wall if column.is_time else time.training) for time in times]
