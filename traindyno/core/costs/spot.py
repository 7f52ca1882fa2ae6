"""What jobs may cost on spot instances, from an assumed discount and an assumed rate of interruptions."""

from dataclasses import dataclass
from decimal import Decimal

from traindyno.core.costs.prices import SECONDS_PER_HOUR
from traindyno.core.costs.quantity_text import share_text, usd_text


@dataclass(frozen=True, slots=True, kw_only=True)
class SpotAssumption:
    """``discount``: share of the on-demand price that is saved. ``interruptions_per_hour`` of one job."""

    discount: float
    interruptions_per_hour: float

    def usd(self, on_demand_usd: Decimal, job_seconds: int) -> Decimal:
        """Of jobs of this length without checkpoints: an interruption repeats half of a job on average."""
        job_hours = Decimal(job_seconds) / SECONDS_PER_HOUR
        repeated = Decimal(str(self.interruptions_per_hour)) * job_hours / 2
        return on_demand_usd * (1 - Decimal(str(self.discount))) * (1 + repeated)

    def text(self) -> str:
        rate = f"{self.interruptions_per_hour:g} interruptions per hour of a job"
        return f"assumed: a discount of {share_text(self.discount, digits=0)} and {rate}"


def spot_cost_text(on_demand_usd: Decimal | None, job_seconds: int, assumed: SpotAssumption) -> str:
    spot_usd = None if on_demand_usd is None else assumed.usd(on_demand_usd, job_seconds)
    return f"{usd_text(spot_usd)} on spot instead of {usd_text(on_demand_usd)} on demand; {assumed.text()}"
