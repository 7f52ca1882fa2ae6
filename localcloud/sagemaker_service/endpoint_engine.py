"""Hosts endpoints on this machine: one thread and one container process for each."""

import logging
import threading
from collections.abc import Mapping
from dataclasses import replace

from localcloud.sagemaker_service.api_error import ApiError
from localcloud.sagemaker_service.clock import Clock
from localcloud.sagemaker_service.hosting import Endpoint, EndpointConfig, EndpointStatus, HostingStore, Model
from localcloud.sagemaker_service.hosting_view import endpoint_event
from localcloud.sagemaker_service.job import FAILURE_REASON_LIMIT
from localcloud.sagemaker_service.job_failure import internal_error
from localcloud.sagemaker_service.job_store import NewEvent
from localcloud.sagemaker_service.log_shipping import LogClient
from localcloud.sagemaker_service.model_container import ContainerFailed, Invocation, LogPlace, ModelContainer
from localcloud.sagemaker_service.s3_transfer import DataUnavailable, S3Transfer
from localcloud.sagemaker_service.safe_paths import UnsafePath
from localcloud.sagemaker_service.settings import Settings
from localcloud.sagemaker_service.toolkit import UnsupportedJob

LOG = logging.getLogger(__name__)
LOG_GROUP = "/aws/sagemaker/Endpoints"
LOOK_AGAIN_SECONDS = 0.5
UNHEALTHY = (
    "The primary container for production variant {variant} did not pass the ping health check. "
    "Please check CloudWatch logs for this endpoint."
)


class EndpointEngine:
    """``wake`` is called when an event is due."""

    def __init__(
        self, *, store: HostingStore, transfer: S3Transfer, logs: LogClient, settings: Settings, clock: Clock
    ) -> None:
        self._store = store
        self._transfer = transfer
        self._logs = logs
        self._settings = settings
        self._clock = clock
        self._lock = threading.Lock()
        self._ending = threading.Event()
        self._threads: dict[str, threading.Thread] = {}
        self._containers: dict[str, ModelContainer] = {}

    def start(self) -> None:
        """Endpoints that were there when the service ended are hosted again."""
        for endpoint in self._store.all(Endpoint):
            match endpoint.status:
                case EndpointStatus.CREATING | EndpointStatus.IN_SERVICE:
                    self.host(endpoint.name)
                case EndpointStatus.DELETING:
                    self._store.remove(endpoint)

    def host(self, name: str) -> None:
        thread = threading.Thread(target=self._host, args=(name,), name=f"endpoint {name}", daemon=True)
        with self._lock:
            self._threads[name] = thread
        thread.start()

    def close(self) -> None:
        self._ending.set()
        with self._lock:
            threads = list(self._threads.values())
        for thread in threads:
            thread.join()

    def move(self, name: str, status: EndpointStatus, failure_reason: str | None = None) -> Endpoint | None:
        """The endpoint in its new status, with the event that tells of it; None where it was removed meanwhile."""
        with self._lock:
            found = self._store.get(Endpoint, name)
            if found is None:
                return None
            is_going = found.status is EndpointStatus.DELETING
            if is_going or (found.status is status and failure_reason is None):
                return found
            now_ms = self._clock.now_ms()
            moved = replace(
                found,
                status=status,
                modified_ms=now_ms,
                failure_reason=failure_reason[:FAILURE_REASON_LIMIT] if failure_reason else None,
            )
            document = endpoint_event(moved, account_id=self._settings.account_id, region=self._settings.region)
            self._store.put(moved, [NewEvent(due_seconds=0, document=document)])
            return moved

    def delete(self, name: str) -> None:
        """The container ends soon; an endpoint that has none any more is removed at once."""
        moved = self.move(name, EndpointStatus.DELETING)
        with self._lock:
            is_hosted = name in self._threads
        if moved is not None and not is_hosted:
            self._store.remove(moved)

    def invoke(self, name: str, body: bytes, headers: Mapping[str, str]) -> Invocation:
        with self._lock:
            container = self._containers.get(name)
        if container is None:
            raise ApiError("ServiceUnavailable", f"endpoint {name} has no container that answers", http_status=503)
        return container.invoke(body, headers)

    def _host(self, name: str) -> None:
        try:
            while self._is_wanted(name):
                self._run_container(name)
        except (ContainerFailed, DataUnavailable, UnsupportedJob, UnsafePath) as error:
            if not self._ending.is_set():
                self.move(name, EndpointStatus.FAILED, self._reason(name, error))
        except Exception as error:
            LOG.exception("endpoint %s could not be hosted", name)
            self.move(name, EndpointStatus.FAILED, internal_error(error))
        finally:
            with self._lock:
                self._threads.pop(name, None)
                gone = self._store.get(Endpoint, name)
            if gone is not None and gone.status is EndpointStatus.DELETING:
                self._store.remove(gone)

    def _run_container(self, name: str) -> None:
        """Until the endpoint is deleted, or its container ends. As SageMaker does, the caller starts another then."""
        folder = self._settings.state_folder / "endpoints" / name
        log_to = LogPlace(group=f"{LOG_GROUP}/{name}", stream=self._variant(name))
        container = ModelContainer(
            self._model(name), folder, transfer=self._transfer, logs=self._logs, settings=self._settings, log_to=log_to
        )
        with container:
            container.start(lambda: not self._is_wanted(name))
            with self._lock:
                self._containers[name] = container
            self.move(name, EndpointStatus.IN_SERVICE)
            try:
                while self._is_wanted(name) and not container.has_ended():
                    self._ending.wait(LOOK_AGAIN_SECONDS)
            finally:
                with self._lock:
                    self._containers.pop(name, None)

    def _is_wanted(self, name: str) -> bool:
        found = self._store.get(Endpoint, name)
        return not self._ending.is_set() and found is not None and found.status is not EndpointStatus.DELETING

    def _config(self, name: str) -> EndpointConfig:
        endpoint = self._store.get(Endpoint, name)
        config = self._store.get(EndpointConfig, endpoint.request["EndpointConfigName"]) if endpoint else None
        if config is None:
            raise UnsupportedJob(f"endpoint {name}: its endpoint configuration does not exist any more")
        return config

    def _variant(self, name: str) -> str:
        return str(self._config(name).request["ProductionVariants"][0]["VariantName"])

    def _model(self, name: str) -> Model:
        model_name = self._config(name).request["ProductionVariants"][0]["ModelName"]
        model = self._store.get(Model, model_name)
        if model is None:
            raise UnsupportedJob(f'Could not find model "{model_name}".')
        return model

    def _reason(self, name: str, error: Exception) -> str:
        if not isinstance(error, ContainerFailed):
            return str(error)
        # SageMaker's sentence leaves out why; on this machine the log is at hand.
        sentence = UNHEALTHY.format(variant=self._variant(name))
        room = FAILURE_REASON_LIMIT - len(sentence) - 40
        return f"{sentence} The container's last lines:\n{error.last_lines[-room:]}"
