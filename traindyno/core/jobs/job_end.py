"""The end of a training job: its outcome, its billed time, and whether another attempt follows."""

from dataclasses import dataclass
from enum import StrEnum

from traindyno.core.errors import NextAttempt
from traindyno.core.jobs.outcome import Outcome


class JobPhaseName(StrEnum):
    WAITING = "waiting"
    STARTING = "starting"
    DOWNLOADING = "downloading"
    TRAINING = "training"
    INTERRUPTED = "interrupted"
    UPLOADING = "uploading"
    STOPPING = "stopping"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPhase:
    """A phase of a training job. Times are epoch seconds; several phases may have the same name."""

    name: JobPhaseName
    begin: float
    end: float

    @property
    def seconds(self) -> float:
        return self.end - self.begin


@dataclass(frozen=True, slots=True, kw_only=True)
class JobEnd:
    """End of a training job.

    Exactly one of ``outcome`` and ``next_attempt`` is set. Billable seconds are wall clock, of each
    instance. ``instance_type`` is None if SageMaker had not yet selected one of several.
    """

    job_name: str
    outcome: Outcome | None
    next_attempt: type[NextAttempt] | None
    message: str
    billable_seconds: int | None
    training_seconds: int | None
    instance_type: str | None
    ended_at: float | None
    phases: tuple[JobPhase, ...]
    image_uri: str | None
