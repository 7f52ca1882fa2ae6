"""What a cell's whole work takes beyond one run without incident: its own failures, and capacity
that fails.
"""

from collections.abc import Mapping
from math import log, log1p

from traindyno.core.costs.hazard import measure_success
from traindyno.core.costs.interruptions import mean_work
from traindyno.core.run.record import QualityTarget
from traindyno.core.verdict.cell_runs import CellRuns
from traindyno.figures.beyond import ExtraTime
from traindyno.figures.estimates import NO_RANGE, Range, range_to
from traindyno.figures.table import PAID_AGAIN, TO_TARGET, FigureColumn

#: The wall clock takes the waiting too.
WALL_CLOCK = (FigureColumn.SECONDS, FigureColumn.SECONDS_TO_TARGET)


def extra_times(runs: CellRuns, target: QualityTarget | None) -> Mapping[FigureColumn, ExtraTime]:
    """By column; nothing is added to what is not paid again, such as rates.

    Own failures: 1 ÷ the success rate, which is binomial. The variance of its logarithm is (1 - p)
    ÷ (n p) by the delta method, with p by Jeffreys.
    """
    if not runs.measured:
        return {}
    success = measure_success([*runs.measured, *runs.others])
    failures = log(success.attempts / success.successes) if success.successes else 0.0
    p = (success.successes + 0.5) / (success.attempts + 1)
    faults = NO_RANGE
    if runs.uneven_faults and success.successes:
        faults = range_to(log1p(runs.uneven_faults.count / success.attempts))
    times = {}
    for column in (*PAID_AGAIN, *(TO_TARGET if target else ())):
        low, middle, high = _interrupted(runs, column, target)
        times[column] = ExtraTime(
            log_factor=failures + middle,
            variance=(1 - p) / (success.attempts * p) if failures else 0.0,
            interruptions=Range(low=min(0.0, low - middle), high=max(0.0, high - middle)),
            faults=faults,
            capacity=runs.hazard.key if runs.hazard else None,
        )
    return times


def _interrupted(
    runs: CellRuns, column: FigureColumn, target: QualityTarget | None
) -> tuple[float, float, float]:
    """The logarithm of the factor at the lowest rate of interruptions, the likely and the highest
    one.
    """
    hazard = runs.hazard
    work = mean_work(runs.measured, target if column in TO_TARGET else None) if hazard else None
    if hazard is None or work is None:
        return 0.0, 0.0, 0.0
    is_wall = column in WALL_CLOCK
    low, middle, high = (
        work.at(hazard, rate) for rate in (hazard.low, hazard.per_instance_hour, hazard.high)
    )
    if is_wall:
        return log(low.wall), log(middle.wall), log(high.wall)
    return log(low.training), log(middle.training), log(high.training)
