"""Spot instances: their discount, observed or assumed, and what jobs cost on them."""

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal

from traindyno.core.costs.prices import SECONDS_PER_HOUR
from traindyno.core.costs.quantity_text import share_text, usd_text
from traindyno.core.jobs.attempt import trained_seconds
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.suite.choices import Purchase
from traindyno.core.suite.suite import Suite


@dataclass(frozen=True, slots=True, kw_only=True)
class SpotAssumption:
    """``discount``: share of the on-demand price that is saved. ``interruptions_per_hour`` of one job."""

    discount: float
    interruptions_per_hour: float

    def usd(self, on_demand_usd: Decimal, at_risk_seconds: Decimal) -> Decimal:
        """An interruption repeats half of the time at risk on average (see ``at_risk_seconds``)."""
        repeated = Decimal(str(self.interruptions_per_hour)) * at_risk_seconds / SECONDS_PER_HOUR / 2
        return on_demand_usd * (1 - Decimal(str(self.discount))) * (1 + repeated)

    def text(self) -> str:
        rate = f"{self.interruptions_per_hour:g} interruptions per hour of a job"
        return f"assumed: a discount of {share_text(self.discount, digits=0)} and {rate}"


def at_risk_seconds(suite: Suite) -> Decimal:
    """The work of a job at its time limit that an interruption can lose: the time between two checkpoints, or all of
    it.

    The checkpoint that a job writes on SIGTERM does not count: it may not be complete within 120 s.
    """
    job_seconds, measurement = Decimal(suite.limits.max_job_seconds), suite.job_measurement
    if measurement.checkpoint_every_steps is None:
        return job_seconds
    return job_seconds * min(Decimal(1), Decimal(measurement.checkpoint_every_steps) / measurement.max_steps)


def spot_cost_text(on_demand_usd: Decimal | None, at_risk_seconds: Decimal, assumed: SpotAssumption) -> str:
    spot_usd = None if on_demand_usd is None else assumed.usd(on_demand_usd, at_risk_seconds)
    return f"{usd_text(spot_usd)} on spot instead of {usd_text(on_demand_usd)} on demand; {assumed.text()}"


def observe_discounts(results: Iterable[RunResult]) -> dict[str, float]:
    """Instance type → 1 - billable ÷ training of all its spot jobs, as SageMaker states the saving."""
    training: dict[str, float] = {}
    billable: dict[str, float] = {}
    for result in results:
        if result.price.purchase != Purchase.SPOT:
            continue
        name = result.run.cell.settings.instance
        for attempt in result.attempts:
            seconds = trained_seconds(attempt)
            if seconds is not None and attempt.billable_seconds is not None:
                training[name] = training.get(name, 0.0) + seconds
                billable[name] = billable.get(name, 0.0) + attempt.billable_seconds
    return {name: max(0.0, 1 - billable[name] / seconds) for name, seconds in training.items() if seconds > 0}
