"""What may still be started under a suite's caps, and when a running job must be stopped to keep
them.
"""

from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum

from traindyno.core.costs.prices import SECONDS_PER_HOUR, cost_usd
from traindyno.core.costs.quantity_text import exact_usd_text, time_limit_text


class Decision(StrEnum):
    """Whether a job may start.

    ``wait``: jobs in flight may cost less than their worst case, which leaves room.
    """

    START = "start"
    WAIT = "wait"
    REFUSE = "refuse"


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    decision: Decision
    reason: str


def admit_cost(
    *, worst_usd: Decimal, exposed_usd: Decimal, spent_usd: Decimal, max_usd: Decimal
) -> Admission:
    """Decide whether the limit on cost allows a job. Amounts are in USD.

    Args:
        worst_usd: Worst case of the job.
        exposed_usd: Amount spent, and the worst case of the jobs in flight without this one.
        spent_usd: Amount spent.
        max_usd: The limit.
    """
    if exposed_usd + worst_usd <= max_usd:
        return Admission(decision=Decision.START, reason="")
    what = (
        f"its worst case is {exact_usd_text(worst_usd)}; {exact_usd_text(spent_usd)} of "
        f"limits.max_usd {exact_usd_text(max_usd)} is spent"
    )
    if spent_usd + worst_usd > max_usd:
        return Admission(decision=Decision.REFUSE, reason=what)
    return Admission(decision=Decision.WAIT, reason=f"{what}; jobs in flight may use up the rest")


def admit_time(*, began: float, now: float, max_hours: Decimal, max_job_seconds: int) -> Admission:
    """A job that runs to its time limit must end within the suite's hours."""
    left_seconds = max_hours * SECONDS_PER_HOUR - Decimal(str(now - began))
    if max_job_seconds <= left_seconds:
        return Admission(decision=Decision.START, reason="")
    left = f"{max(0, int(left_seconds))} s are left of {time_limit_text(max_hours)}"
    reason = f"it may run {max_job_seconds} s, and {left}"
    return Admission(decision=Decision.REFUSE, reason=reason)


def needed_reservation_usd(
    *,
    billed_seconds: float,
    next_look_seconds: float,
    ending_seconds: float,
    instance_count: int,
    usd_per_hour: Decimal,
) -> Decimal:
    """The cost of a running job if the next check stops it, which takes ``ending_seconds``.

    A job that has reserved less needs more, or is stopped.
    """
    seconds = Decimal(str(billed_seconds + next_look_seconds + ending_seconds))
    return cost_usd(seconds, instance_count, usd_per_hour)
