"""The row of an attempt, from the run or preparation that it is submitted for, its terms and its prices."""

from collections.abc import Mapping
from decimal import Decimal

from traindyno.aws.training_jobs import JobRefused
from traindyno.core.jobs.job import AttemptOwner, owner_text
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.planning.job_terms import JobTerms
from traindyno.store.attempts import AttemptRow
from traindyno.store.executions import ExecutionRow


def price_types(owner: AttemptOwner, terms: JobTerms, execution: ExecutionRow) -> dict[str, Decimal]:
    """The price of each instance type that the job may run on, as the suite was planned."""
    unknown = [name for name in terms.types if name not in execution.prices]
    if unknown:
        raise JobRefused(
            Outcome.INTERNAL_ERROR, f"{owner_text(owner)}: its execution has no price of {', '.join(unknown)}"
        )
    return {name: execution.prices[name].usd_per_hour for name in terms.types}


def new_attempt(
    owner: AttemptOwner,
    terms: JobTerms,
    usd_by_type: Mapping[str, Decimal],
    *,
    job_name: str,
    number: int,
    is_last: bool,
    token: str,
    submitted_at: float,
    placed_on: str | None,
) -> AttemptRow:
    """The attempt with what it reserves under the cap: its worst case at the highest of its prices."""
    highest = max(usd_by_type.values())
    return AttemptRow(
        job_name=job_name,
        owner=owner,
        number=number,
        is_last=is_last,
        token=token,
        submitted_at=submitted_at,
        instance_count=terms.instance_count,
        max_job_seconds=terms.max_job_seconds,
        ending_seconds=terms.ending_seconds,
        keep_warm_seconds=terms.keep_warm_seconds,
        usd_per_hour=highest,
        reserved_usd=terms.worst_case_usd(highest),
        usd_by_type=usd_by_type if len(usd_by_type) > 1 else {},
        placed_on=placed_on,
    )
