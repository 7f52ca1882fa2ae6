"""What a job may use at most, whether it is submitted for a run or for a preparation."""

from dataclasses import dataclass
from decimal import Decimal

from traindyno.core.costs.prices import cost_usd
from traindyno.core.suite.fallback_cells import accepted_types
from traindyno.core.suite.preparation import AttemptOwner, DataPreparation, preparation_seconds
from traindyno.core.suite.suite import Run, Suite


@dataclass(frozen=True, slots=True, kw_only=True)
class JobTerms:
    """``types`` are the instance types that the job may run on. ``keep_warm_seconds`` follow the job's end."""

    types: tuple[str, ...]
    instance_count: int
    max_job_seconds: int
    keep_warm_seconds: int = 0

    def worst_case_usd(self, usd_per_hour: Decimal) -> Decimal:
        """One attempt at its time limit, its instances kept warm afterwards for as long as the suite asks."""
        return cost_usd(self.max_job_seconds + self.keep_warm_seconds, self.instance_count, usd_per_hour)


def job_terms(owner: AttemptOwner, suite: Suite, *, placed_on: str | None = None) -> JobTerms:
    """``placed_on``: the instance type of an earlier attempt of the run; the next attempt uses the same type."""
    match owner:
        case DataPreparation():
            return JobTerms(types=(owner.instance,), instance_count=1, max_job_seconds=preparation_seconds(suite))
        case Run():
            settings = owner.cell.settings
            return JobTerms(
                types=(placed_on,) if placed_on else accepted_types(suite, settings.instance),
                instance_count=settings.instance_count,
                max_job_seconds=suite.limits.max_job_seconds,
                keep_warm_seconds=suite.warm_pool_seconds,
            )
