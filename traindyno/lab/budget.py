"""Reserve what a job may cost at most, and settle what it did cost: no job starts or runs past the
execution's cap.
"""

from collections.abc import Sequence
from decimal import Decimal
from typing import Protocol

from traindyno.aws.table import Write
from traindyno.aws.training_jobs import JobRefused
from traindyno.core.costs.prices import cost_usd
from traindyno.core.errors import ServiceFault, SlotUnavailable
from traindyno.core.jobs.attempt import Attempt
from traindyno.core.jobs.job import AttemptOwner, not_started_text, owner_text
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.planning.admission import Decision, admit_cost
from traindyno.store.attempts import AttemptRow, AttemptRows
from traindyno.store.executions import ExecutionRows
from traindyno.store.spending import Reservation, Spending


class BudgetServices(Protocol):
    executions: ExecutionRows
    attempts: AttemptRows
    spending: Spending


def reserve_worst_case(
    row: AttemptRow, *, cap_usd: Decimal, services: BudgetServices, also: Sequence[Write]
) -> bool:
    """Create the attempt's row, reserve its worst case and write ``also``; False if the attempt has
    its row already.

    JobRefused if there is no room under the cap or the execution is being stopped, SlotUnavailable
    while jobs in flight may leave some room.
    """
    reservation = services.spending.reserve(row, cap_usd=cap_usd, also=also)
    if reservation is Reservation.STOPPING:
        raise stopped_before(row.owner)
    if reservation is not Reservation.NO_ROOM:
        return reservation is Reservation.MADE
    money = services.spending.read(row.owner.execution_id)
    admission = admit_cost(
        worst_usd=row.reserved_usd,
        exposed_usd=money.exposed_usd,
        spent_usd=money.spent_usd,
        max_usd=cap_usd,
    )
    if admission.decision is Decision.REFUSE:
        raise JobRefused(Outcome.COST_STOPPED, not_started_text(row.owner, admission.reason))
    raise SlotUnavailable(f"{owner_text(row.owner)} waits: {admission.reason}")


def stopped_before(owner: AttemptOwner) -> JobRefused:
    reason = "its execution was stopped before"
    return JobRefused(Outcome.STOPPED_BY_USER, not_started_text(owner, reason))


def hold_more(row: AttemptRow, needed_usd: Decimal, *, services: BudgetServices) -> bool:
    """Reserve more for a running job; False if the cap has no room for it.

    An attempt that has ended or changed since it was read is left to the next sweep.
    """
    if needed_usd <= row.reserved_usd:
        return True
    execution = services.executions.find(row.owner.execution_id)
    if execution is None:
        return False
    return (
        services.spending.reserve_more(row, needed_usd, cap_usd=execution.max_usd)
        is not Reservation.NO_ROOM
    )


def hold_all(row: AttemptRow, billed_usd: Decimal, *, services: BudgetServices) -> None:
    """Reserve all that is left under the cap for a job that nothing can end, and its cost so far if
    that is more.

    An attempt that has ended or changed since it was read is left to the next sweep.
    """
    execution = services.executions.find(row.owner.execution_id)
    exposed_usd = services.spending.read(row.owner.execution_id).exposed_usd
    left_usd = max(Decimal(0), execution.max_usd - exposed_usd) if execution else Decimal(0)
    needed_usd = max(billed_usd, row.reserved_usd + left_usd)
    if needed_usd > row.reserved_usd:
        services.spending.reserve_more(row, needed_usd, cap_usd=None)


def record_end(row: AttemptRow, end: Attempt, *, services: BudgetServices) -> AttemptRow | None:
    """The attempt as it has ended, its cost settled; None if its end is known already, or if its
    job was submitted again meanwhile, so that the end may be of no job.

    A job whose billable time is unknown keeps its worst case.
    """
    while row.end is None:
        seconds = end.billable_seconds
        is_ours = services.spending.end(
            row, end, None if seconds is None else time_usd(row, seconds)
        )
        latest = services.attempts.find(row.job_name)
        if is_ours or latest is None:
            return latest
        if latest.submitted_at != row.submitted_at:
            return None
        if latest == row:
            raise ServiceFault(
                f"{row.job_name}: its end was refused, and its row is as it was read before"
            )
        row = latest
    return None


def time_usd(row: AttemptRow, seconds: float) -> Decimal:
    """The cost of this many seconds of the attempt's instances."""
    return cost_usd(Decimal(str(seconds)), row.instance_count, row.usd_per_hour)
