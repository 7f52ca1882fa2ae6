"""From a short run to the whole workload: its time and cost, were the measured rate to hold."""

from dataclasses import dataclass
from decimal import Decimal

from traindyno.core.costs import prices
from traindyno.core.costs.prices import SECONDS_PER_HOUR
from traindyno.core.measurement.run_phases import STEADY
from traindyno.core.measurement.run_result import RunResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Projection:
    """``overhead_seconds`` is what a job is billed for beside its steady window, and is paid once."""

    examples: int
    overhead_seconds: float
    seconds: float
    instance_hours: float
    usd: Decimal | None


def project_run(result: RunResult) -> Projection | None:
    """None where the run measured no rate, or its billable time is unknown."""
    measured, billable = result.measured, result.billable_seconds
    if measured is None or measured.throughput is None or billable is None:
        return None
    return project(
        examples=result.examples,
        samples_per_second=measured.throughput.samples_per_second,
        billable_seconds=billable,
        steady_seconds=result.phases_seconds.get(STEADY, 0.0),
        samples_before_steady=measured.samples_before_steady,
        instance_count=result.run.cell.settings.instance_count,
        usd_per_instance_hour=result.price.usd_per_instance_hour,
    )


def paid_usd(result: RunResult) -> Decimal | None:
    """What the run's attempts were billed, instances kept warm included; None if time or price is unknown."""
    if result.billable_seconds is None:
        return None
    warm_seconds = sum(attempt.kept_warm_seconds or 0.0 for attempt in result.attempts)
    count, price = result.run.cell.settings.instance_count, result.price.usd_per_instance_hour
    return cost_usd(result.billable_seconds + warm_seconds, count, price)


def project(
    *,
    examples: int,
    samples_per_second: float,
    billable_seconds: float,
    steady_seconds: float,
    samples_before_steady: int,
    instance_count: int,
    usd_per_instance_hour: Decimal | None,
) -> Projection:
    """Overhead as measured, plus what is left of the work at the steady rate."""
    overhead = max(0.0, billable_seconds - steady_seconds)
    seconds = overhead + max(0, examples - samples_before_steady) / samples_per_second
    return Projection(
        examples=examples,
        overhead_seconds=overhead,
        seconds=seconds,
        instance_hours=seconds * instance_count / SECONDS_PER_HOUR,
        usd=cost_usd(seconds, instance_count, usd_per_instance_hour),
    )


def cost_usd(seconds: float, instance_count: int, usd_per_instance_hour: Decimal | None) -> Decimal | None:
    """None if the price is unknown. Seconds go by their shortest text, so that 0.1 is 0.1."""
    if usd_per_instance_hour is None:
        return None
    return prices.cost_usd(Decimal(str(seconds)), instance_count, usd_per_instance_hour)
