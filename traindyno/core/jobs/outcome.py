"""How a run ended."""

from enum import StrEnum


class Outcome(StrEnum):
    COMPLETED = "completed"
    OUT_OF_MEMORY = "out_of_memory"
    KILLED = "killed"  # a signal ended it, and nothing shows that memory ran out
    LOSS_DIVERGED = "loss_diverged"
    TIMED_OUT = "timed_out"
    COST_STOPPED = "cost_stopped"
    CAPACITY_UNAVAILABLE = "capacity_unavailable"
    QUOTA_EXCEEDED = "quota_exceeded"
    IMAGE_ERROR = "image_error"
    PERMISSION_ERROR = "permission_error"
    USER_CODE_ERROR = "user_code_error"
    INTERNAL_ERROR = "internal_error"
    STOPPED_BY_USER = "stopped_by_user"
    OUTPACED = "outpaced"  # it could not win any more, so its job ended it
