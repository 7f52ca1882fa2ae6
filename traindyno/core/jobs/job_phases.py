"""How long a described training job spent waiting, starting, downloading, training and uploading."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

SHORTAGE_TEXTS = ("insufficient capacity", "capacity error", "waiting for capacity")


class JobPhaseName(StrEnum):
    WAITING = "waiting"
    STARTING = "starting"
    DOWNLOADING = "downloading"
    TRAINING = "training"
    INTERRUPTED = "interrupted"
    UPLOADING = "uploading"
    STOPPING = "stopping"


PHASE_OF_STATUS = {
    "Pending": JobPhaseName.WAITING,
    "Starting": JobPhaseName.STARTING,
    "LaunchingMLInstances": JobPhaseName.STARTING,
    "PreparingTrainingStack": JobPhaseName.STARTING,
    "Restarting": JobPhaseName.STARTING,
    "Updating": JobPhaseName.STARTING,
    "Downloading": JobPhaseName.DOWNLOADING,
    "DownloadingTrainingImage": JobPhaseName.DOWNLOADING,
    "Training": JobPhaseName.TRAINING,
    "Interrupted": JobPhaseName.INTERRUPTED,
    "Uploading": JobPhaseName.UPLOADING,
    "Stopping": JobPhaseName.STOPPING,
}
INSTANT_STATUSES = ("Completed", "Failed", "Stopped", "MaxRuntimeExceeded", "MaxWaitTimeExceeded")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPhase:
    """Epoch seconds; several of one name may follow each other."""

    name: JobPhaseName
    begin: float
    end: float

    @property
    def seconds(self) -> float:
        return self.end - self.begin


def read_phases(transitions: Iterable[Mapping[str, Any]]) -> tuple[JobPhase, ...]:
    """From a job's SecondaryStatusTransitions. A start that reports a shortage of instances counts as waiting."""
    phases = []
    for transition in transitions:
        status = transition["Status"]
        if status in INSTANT_STATUSES or transition.get("EndTime") is None:
            continue
        name = PHASE_OF_STATUS[status]
        if name is JobPhaseName.STARTING and _reports_shortage(transition.get("StatusMessage")):
            name = JobPhaseName.WAITING
        begin, end = epoch_seconds(transition["StartTime"]), epoch_seconds(transition["EndTime"])
        phases.append(JobPhase(name=name, begin=begin, end=end))
    return tuple(phases)


def phase_seconds(phases: Iterable[JobPhase]) -> dict[str, float]:
    """Name → seconds, summed, for every phase name."""
    totals = {name.value: 0.0 for name in JobPhaseName}
    for phase in phases:
        totals[phase.name.value] += phase.seconds
    return totals


def epoch_seconds(time: datetime | float) -> float:
    return time.timestamp() if isinstance(time, datetime) else float(time)


def _reports_shortage(message: str | None) -> bool:
    return any(text in (message or "").lower() for text in SHORTAGE_TEXTS)
