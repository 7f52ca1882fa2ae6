"""Injects faults that a test asks for: which requests, jobs and events fail, and how."""

import random
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import cattrs

from localcloud.sagemaker_service.api_error import ApiError
from localcloud.sagemaker_service.jobs.job_store import JobStore

KIND = "faults"
CAPACITY_ERROR = (
    "CapacityError: Unable to provision requested ML compute capacity. Please retry using a "
    "different ML instance type."
)
CONVERTER = cattrs.Converter(forbid_extra_keys=True)


class JobFault(StrEnum):
    """What can happen to a job.

    ``capacity_wait`` delays it by ``capacity_wait_seconds``; every other fault ends or interrupts
    it.
    """

    CAPACITY_ERROR = "capacity_error"
    CAPACITY_WAIT = "capacity_wait"
    INTERNAL_ERROR = "internal_error"
    OUT_OF_MEMORY = "out_of_memory"
    KILLED_PROCESS = "killed_process"
    SPOT_INTERRUPTION = "spot_interruption"


class Stops(StrEnum):
    """Which processes of a host get SIGTERM at a stop.

    With ``none``, the entry point passes no signal on.
    """

    ALL = "all"
    LAUNCHER = "launcher"
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedFault:
    """A fault of every job whose name contains the text."""

    name_contains: str
    fault: JobFault


@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """The faults that a test asks for.

    Each fraction is the probability for one request, job or event. The seed and the name decide.
    """

    seed: int = 0
    capacity_error_fraction: float = 0.0
    capacity_wait_fraction: float = 0.0
    capacity_wait_seconds: float = 600.0
    internal_error_fraction: float = 0.0
    out_of_memory_fraction: float = 0.0
    killed_process_fraction: float = 0.0
    spot_interruption_fraction: float = 0.0
    spot_interruptions: int = 1
    spot_notice_fraction: float = 1.0
    unheeded_limits: bool = False
    #: Which processes get SIGTERM at a stop; None for the launcher of a shared job, and for all
    #: processes of any other.
    stops: Stops | None = None
    named: tuple[NamedFault, ...] = ()
    throttling_fraction: float = 0.0
    lost_event_fraction: float = 0.0
    duplicated_event_fraction: float = 0.0
    late_event_fraction: float = 0.0
    late_event_seconds: float = 2.0


class FaultInjector:
    """Applies the current faults.

    They are stored, so that a restart during a rehearsal keeps them.
    """

    def __init__(self, store: JobStore) -> None:
        self._store = store
        self._requests = random.Random()
        self._lock = threading.Lock()
        stored = store.documents(KIND).get(KIND)
        self._faults = read_faults(stored) if stored else Faults()
        self._requests.seed(self._faults.seed)

    @property
    def current(self) -> Faults:
        return self._faults

    def replace(self, document: Mapping[str, Any]) -> Faults:
        self._faults = read_faults(document)
        self._requests.seed(self._faults.seed)
        self._store.write_document(KIND, KIND, cattrs.unstructure(self._faults))
        return self._faults

    def job_fault(self, job_name: str) -> JobFault | None:
        faults = self._faults
        for named in faults.named:
            if named.name_contains in job_name:
                return named.fault
        drawn = self.dice("job", job_name).random()
        for fault in JobFault:
            drawn -= getattr(faults, f"{fault}_fraction")
            if drawn < 0:
                return fault
        return None

    def dice(self, *names: str) -> random.Random:
        """A generator that gives the same numbers in each call with the same names."""
        return random.Random(":".join((str(self._faults.seed), *names)))

    def event_delays(self, job_name: str, step: str) -> list[float]:
        """The delay in real seconds of each delivery of an event: none if it is lost, two if it is
        repeated.
        """
        faults = self._faults
        dice = self.dice("event", job_name, step)
        is_lost = dice.random()
        is_repeated = dice.random()
        is_late = dice.random()
        if is_lost < faults.lost_event_fraction:
            return []
        delay = faults.late_event_seconds if is_late < faults.late_event_fraction else 0.0
        return [delay, delay] if is_repeated < faults.duplicated_event_fraction else [delay]

    def refuse_request(self) -> None:
        """Raises ApiError for the fraction of requests that the faults ask for."""
        with self._lock:
            is_throttled = self._requests.random() < self._faults.throttling_fraction
        if is_throttled:
            raise ApiError("ThrottlingException", "Rate exceeded")


def read_faults(document: Mapping[str, Any]) -> Faults:
    try:
        return CONVERTER.structure(document, Faults)
    except cattrs.BaseValidationError as error:
        raise ApiError(
            "ValidationException", "; ".join(cattrs.transform_error(error, path="faults"))
        ) from error
