"""An attempt: one training job submitted for a run, as its description told when it had ended."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from traindyno.core.jobs.outcome import Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """``outcome`` is None where the attempt led to the next one; ``error`` then names why (an ErrorEquals name).

    ``billable_seconds`` are wall-clock, to be multiplied by the number of instances. ``phase_seconds`` are the
    service's own statuses (waiting, starting, downloading, training, uploading). Times are epoch seconds.

    ``instance_type`` is the one that it ran on, or was to; None where none of several had been selected.

    ``started_warm``: on the instances that an earlier job left; None where nothing is kept warm. ``keep_warm_seconds``
    is for how long its own may be kept after it at most, ``kept_warm_seconds`` for how long they were, once that is
    known; both are wall clock too.
    """

    number: int
    job_name: str
    outcome: Outcome | None = None
    error: str | None = None
    message: str | None = None
    submitted_at: float | None = None
    started_at: float | None = None
    ended_at: float | None = None
    billable_seconds: float | None = None
    training_seconds: float | None = None
    phase_seconds: Mapping[str, float] = field(default_factory=dict)
    image_uri: str | None = None
    instance_type: str | None = None
    started_warm: bool | None = None
    keep_warm_seconds: float = 0.0
    kept_warm_seconds: float | None = None


def instance_type_of(attempts: Sequence[Attempt]) -> str | None:
    """The type on which a run has worked; None while nothing was billed."""
    return next(
        (each.instance_type for each in reversed(attempts) if each.billable_seconds and each.instance_type), None
    )
