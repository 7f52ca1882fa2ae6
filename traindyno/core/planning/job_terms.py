"""What a job may use at most, whether it is submitted for a run or for a preparation."""

from dataclasses import dataclass, replace
from decimal import Decimal

from traindyno.core.costs.prices import cost_usd
from traindyno.core.suite.fallback_cells import accepted_types
from traindyno.core.suite.preparation import AttemptOwner, DataPreparation, preparation_seconds
from traindyno.core.suite.settings import Settings
from traindyno.core.suite.suite import Run, Suite


@dataclass(frozen=True, slots=True, kw_only=True)
class JobTerms:
    """``types`` are the instance types that the job may run on. ``keep_warm_seconds`` follow the job's end."""

    types: tuple[str, ...]
    instance_count: int
    max_job_seconds: int
    keep_warm_seconds: int = 0

    @property
    def longest_seconds(self) -> int:
        """One attempt at its time limit, its instances kept warm afterwards for as long as the suite asks."""
        return self.max_job_seconds + self.keep_warm_seconds

    def worst_case_usd(self, usd_per_hour: Decimal) -> Decimal:
        return cost_usd(self.longest_seconds, self.instance_count, usd_per_hour)


def job_terms(owner: AttemptOwner, suite: Suite, *, placed_on: str | None = None) -> JobTerms:
    """``placed_on``: the instance type of an earlier attempt of the run; the next attempt uses the same type."""
    match owner:
        case DataPreparation():
            return JobTerms(types=(owner.instance,), instance_count=1, max_job_seconds=preparation_seconds(suite))
        case Run():
            terms = run_terms(owner.cell.settings, suite)
            return replace(terms, types=(placed_on,)) if placed_on else terms


def run_terms(settings: Settings, suite: Suite) -> JobTerms:
    """The terms of each run with these settings."""
    return JobTerms(
        types=accepted_types(suite, settings.instance),
        instance_count=settings.instance_count,
        max_job_seconds=suite.limits.max_job_seconds,
        keep_warm_seconds=suite.warm_pool_seconds,
    )
