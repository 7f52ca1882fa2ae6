"""How a run ended."""

from enum import StrEnum

#: The two ways to write a suite's limit on its time; messages name the one that was reached.
TIME_LIMITS = ("limits.max_hours", "limits.max_minutes")


class Outcome(StrEnum):
    COMPLETED = "completed"
    OUT_OF_MEMORY = "out_of_memory"
    KILLED = "killed"  # a signal ended it, and nothing shows that memory ran out
    LOSS_DIVERGED = "loss_diverged"
    TIMED_OUT = "timed_out"
    COST_STOPPED = (
        "cost_stopped"  # max_usd or max_hours of the suite ended it, or had no room for it
    )
    CAPACITY_UNAVAILABLE = "capacity_unavailable"
    QUOTA_EXCEEDED = "quota_exceeded"
    IMAGE_ERROR = "image_error"
    PERMISSION_ERROR = "permission_error"
    USER_CODE_ERROR = "user_code_error"
    INTERNAL_ERROR = "internal_error"
    STOPPED_BY_USER = "stopped_by_user"
    OUTPACED = "outpaced"  # it could not win any more, so its job ended it


# What an outcome means, in one table. A run with a success did its work: its rate counts.
SUCCESSES = frozenset({Outcome.COMPLETED, Outcome.COST_STOPPED})
# The cell itself causes these: the whole workload would end in the same way.
OWN_FAILURES = frozenset(
    {Outcome.OUT_OF_MEMORY, Outcome.LOSS_DIVERGED, Outcome.TIMED_OUT, Outcome.USER_CODE_ERROR}
)
# The service causes these, or lacks capacity.
FAULTS = frozenset({Outcome.INTERNAL_ERROR, Outcome.CAPACITY_UNAVAILABLE})
# The time of such a run predicts the time of the cell's next one.
TELLS_TIME = {Outcome.COMPLETED} | OWN_FAILURES - {Outcome.USER_CODE_ERROR}
# A run that ended so was measured with its batch.
HAD_BATCH = frozenset({Outcome.COMPLETED, Outcome.OUTPACED})
# Only SageMaker's description of the job, or the lab, can know these.
NOT_OF_CONTAINER = SUCCESSES | {
    Outcome.TIMED_OUT,
    Outcome.OUTPACED,
    Outcome.CAPACITY_UNAVAILABLE,
    Outcome.QUOTA_EXCEEDED,
}


def outcome_text(outcome: str, message: str | None = None) -> str:
    """Outcome in words. ``message``, the run's, says which limit of the suite was reached."""
    if outcome != Outcome.COST_STOPPED:
        return outcome.replace("_", " ")
    if not message:
        return "limit reached"
    is_time = any(limit in message for limit in TIME_LIMITS)
    return f"{'time' if is_time else 'cost'} limit reached"
