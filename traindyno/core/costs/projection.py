"""From a short run to the whole workload: its time and cost, were the measured rate to hold."""

from dataclasses import dataclass
from decimal import Decimal

from traindyno.core.costs import prices
from traindyno.core.costs.prices import SECONDS_PER_HOUR


@dataclass(frozen=True, slots=True, kw_only=True)
class Projection:
    """``overhead_seconds`` is what a job is billed for beside its steady window, and is paid once."""

    examples: int
    overhead_seconds: float
    seconds: float
    instance_hours: float
    usd: Decimal | None


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
