"""Reserve what a job may cost at most, and settle what it did cost: no job starts or runs past the execution's cap."""

from decimal import Decimal

from traindyno.aws.training_jobs import JobRefused
from traindyno.core.costs.prices import cost_usd
from traindyno.core.errors import SlotUnavailable
from traindyno.core.jobs.attempt import Attempt
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.planning.admission import Decision, admit_cost
from traindyno.core.suite.preparation import owner_id
from traindyno.lab.services import LabServices
from traindyno.store.attempts import AttemptRow


def reserve_worst_case(row: AttemptRow, *, cap_usd: Decimal, services: LabServices) -> None:
    """JobRefused if there is no room under the cap, SlotUnavailable while jobs in flight may leave some."""
    execution_id = row.owner.execution_id
    if services.spending.reserve(execution_id, row.reserved_usd, cap_usd=cap_usd):
        return
    money = services.spending.read(execution_id)
    admission = admit_cost(
        worst_usd=row.reserved_usd, exposed_usd=money.exposed_usd, spent_usd=money.spent_usd, max_usd=cap_usd
    )
    name = f"run {owner_id(row.owner)}"
    if admission.decision is Decision.REFUSE:
        raise JobRefused(Outcome.COST_STOPPED, f"{name} was not started: {admission.reason}")
    raise SlotUnavailable(f"{name} waits: {admission.reason}")


def release(row: AttemptRow, *, services: LabServices) -> None:
    """No job was started."""
    services.spending.settle(row.owner.execution_id, reserved_usd=row.reserved_usd, spent_usd=Decimal(0))


def hold_more(row: AttemptRow, needed_usd: Decimal, *, services: LabServices) -> bool:
    """Reserve more for a running job; False if the cap has no room for it."""
    execution_id, more_usd = row.owner.execution_id, needed_usd - row.reserved_usd
    if more_usd <= 0:
        return True
    execution = services.executions.find(execution_id)
    if execution is None or not services.spending.reserve(execution_id, more_usd, cap_usd=execution.max_usd):
        return False
    if not services.attempts.hold(row.job_name, needed_usd):
        services.spending.settle(execution_id, reserved_usd=more_usd, spent_usd=Decimal(0))
    return True


def settle_end(row: AttemptRow, *, services: LabServices) -> None:
    """A job whose billable time is unknown keeps its worst case; so do instances that may still be kept warm."""
    end = row.end
    if end is None or end.billable_seconds is None:
        return
    services.spending.settle(
        row.owner.execution_id,
        reserved_usd=row.reserved_usd - time_usd(row, end.keep_warm_seconds),
        spent_usd=placed_usd(row, end, end.billable_seconds),
        pool_of=row.job_name if end.keep_warm_seconds else None,
    )


def time_usd(row: AttemptRow, seconds: float) -> Decimal:
    """The highest cost of this many seconds of the attempt's instances."""
    return cost_usd(Decimal(str(seconds)), row.instance_count, row.usd_per_hour)


def placed_usd(row: AttemptRow, end: Attempt, seconds: float) -> Decimal:
    """At the price of the instance type that the job ran on."""
    usd_per_hour = row.usd_by_type.get(end.instance_type or "", row.usd_per_hour)
    return cost_usd(Decimal(str(seconds)), row.instance_count, usd_per_hour)
