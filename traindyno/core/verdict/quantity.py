"""What of a run is compared between cells: its rate, and the time, cost and instance hours of the whole workload."""

from collections.abc import Callable

from traindyno.core.costs.projection import project_run
from traindyno.core.measurement.run_result import RunResult

Quantity = Callable[[RunResult], float | None]


def samples_per_second(result: RunResult) -> float | None:
    return result.samples_per_second


def tokens_per_second(result: RunResult) -> float | None:
    return result.measured.throughput.tokens_per_second if result.measured and result.measured.throughput else None


def projected_seconds(result: RunResult) -> float | None:
    projection = project_run(result)
    return projection.seconds if projection else None


def projected_usd(result: RunResult) -> float | None:
    projection = project_run(result)
    return float(projection.usd) if projection and projection.usd is not None else None


def projected_instance_hours(result: RunResult) -> float | None:
    projection = project_run(result)
    return projection.instance_hours if projection else None


# A trial that fails has to be paid again before the work is done.
PAID_AGAIN: tuple[Quantity, ...] = (projected_seconds, projected_usd, projected_instance_hours)
