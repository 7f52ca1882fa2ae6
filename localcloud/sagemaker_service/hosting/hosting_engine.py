"""The base of the engines of endpoints and transform jobs: a thread for each resource, and its model's container."""

import threading
from collections.abc import Callable
from dataclasses import dataclass

from localcloud.sagemaker_service.clock import SystemClock
from localcloud.sagemaker_service.host.toolkit import UnsupportedJob
from localcloud.sagemaker_service.hosting.hosting import HostedModel, HostingStore
from localcloud.sagemaker_service.hosting.model_container import ContainerFailed, LogDestination, ModelContainer
from localcloud.sagemaker_service.jobs.job import FAILURE_REASON_LIMIT
from localcloud.sagemaker_service.service_health import ServiceHealth, write_until_done
from localcloud.sagemaker_service.settings import ServiceSettings
from localcloud.sagemaker_service.storage.log_shipping import LogClient
from localcloud.sagemaker_service.storage.s3_transfer import DataUnavailable, S3Transfer
from localcloud.sagemaker_service.storage.safe_paths import UnsafePath

PART = "record of endpoints and transform jobs"
# The request or the data cause these errors. Every other error is a fault of this service.
CAUSED_BY_THE_REQUEST = (DataUnavailable, UnsupportedJob, UnsafePath)


@dataclass(frozen=True, slots=True, kw_only=True)
class HostingContext:
    """The objects that the engines of one service share."""

    store: HostingStore
    transfer: S3Transfer
    logs: LogClient
    settings: ServiceSettings
    clock: SystemClock
    health: ServiceHealth


class HostingEngine:
    """Works in threads, which ``close`` ends. A subclass defines the work of a resource's thread."""

    def __init__(self, context: HostingContext) -> None:
        self._store = context.store
        self._health = context.health
        self._transfer = context.transfer
        self._logs = context.logs
        self._settings = context.settings
        self._clock = context.clock
        self._lock = threading.Lock()
        self._ending = threading.Event()
        self._threads: dict[str, threading.Thread] = {}

    def close(self) -> None:
        """Returns when every thread and its container have ended."""
        self._ending.set()
        with self._lock:
            threads = list(self._threads.values())
        for thread in threads:
            thread.join()

    def _start_thread(self, name: str, work: Callable[[str], None], *, kind: str) -> None:
        thread = threading.Thread(target=work, args=(name,), name=f"{kind} {name}", daemon=True)
        with self._lock:
            self._threads[name] = thread
        thread.start()

    def _write(self, change: Callable[[], object]) -> None:
        write_until_done(change, health=self._health, part=PART, ending=self._ending)

    def _container(self, model_name: str, folder_name: str, log_to: LogDestination) -> ModelContainer:
        """``folder_name`` is below the state folder. Raises UnsupportedJob if the model was deleted."""
        model = self._store.get(HostedModel, model_name)
        if model is None:
            raise UnsupportedJob(f'Could not find model "{model_name}".')
        folder = self._settings.state_folder / folder_name
        return ModelContainer(
            model, folder, transfer=self._transfer, logs=self._logs, settings=self._settings, log_to=log_to
        )


def with_last_lines(reason: str, error: ContainerFailed) -> str:
    """Adds the end of the container's log to SageMaker's sentence, which has no cause."""
    room = FAILURE_REASON_LIMIT - len(reason) - 40
    return f"{reason} The container's last lines:\n{error.last_lines[-room:]}"
