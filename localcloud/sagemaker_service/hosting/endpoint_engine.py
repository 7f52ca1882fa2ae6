"""Hosts endpoints on this machine, each with a thread and a container."""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from localcloud.sagemaker_service.api_error import ApiError
from localcloud.sagemaker_service.host.toolkit import UnsupportedJob
from localcloud.sagemaker_service.hosting.hosting import Endpoint, EndpointConfig, EndpointStatus
from localcloud.sagemaker_service.hosting.hosting_engine import (
    CAUSED_BY_THE_REQUEST,
    HostingContext,
    HostingEngine,
    with_last_lines,
)
from localcloud.sagemaker_service.hosting.hosting_view import endpoint_event
from localcloud.sagemaker_service.hosting.model_container import (
    ContainerFailed,
    Invocation,
    LogDestination,
    ModelContainer,
    StartInterrupted,
)
from localcloud.sagemaker_service.jobs.job import FAILURE_REASON_LIMIT
from localcloud.sagemaker_service.jobs.job_store import NewEvent
from localcloud.sagemaker_service.service_health import internal_error

LOG = logging.getLogger(__name__)
LOG_GROUP = "/aws/sagemaker/Endpoints"
LOOK_AGAIN_SECONDS = 0.5
UNHEALTHY = (
    "The primary container for production variant {variant} did not pass the ping health check. "
    "Please check CloudWatch logs for this endpoint."
)


class Unhealthy(Exception):
    """The container did not start. The text has the words of SageMaker's failure reason."""


@dataclass(kw_only=True)
class _RunningContainer:
    """A container that answers. ``most_at_once`` is the limit of a serverless endpoint; None lets requests wait."""

    container: ModelContainer
    most_at_once: int | None
    in_flight: int = 0


class EndpointEngine(HostingEngine):
    def __init__(self, context: HostingContext) -> None:
        super().__init__(context)
        self._hosted: dict[str, _RunningContainer] = {}

    def start(self) -> None:
        """Hosts the endpoints that existed when the service ended."""
        for endpoint in self._store.all(Endpoint):
            match endpoint.status:
                case EndpointStatus.CREATING | EndpointStatus.IN_SERVICE:
                    self.host(endpoint.name)
                case EndpointStatus.DELETING:
                    self._store.remove(endpoint)

    def host(self, name: str) -> None:
        self._start_thread(name, self._host, kind="endpoint")

    def move(self, name: str, status: EndpointStatus, failure_reason: str | None = None) -> Endpoint | None:
        """Stores the endpoint's new status with its event, and returns it; None if the endpoint was removed before."""
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
        """Makes the endpoint's thread end and remove it. An endpoint without a thread is removed immediately."""
        moved = self.move(name, EndpointStatus.DELETING)
        with self._lock:
            is_hosted = name in self._threads
        if moved is not None and not is_hosted:
            self._store.remove(moved)

    def invoke(self, name: str, body: bytes, headers: Mapping[str, str]) -> Invocation:
        with self._lock:
            hosted = self._hosted.get(name)
        if hosted is None:
            raise ApiError("ServiceUnavailable", f"endpoint {name} has no container that answers", http_status=503)
        with self._counted(name, hosted):
            return hosted.container.invoke(body, headers)

    @contextmanager
    def _counted(self, name: str, hosted: _RunningContainer) -> Iterator[None]:
        with self._lock:
            if hosted.most_at_once is not None and hosted.in_flight >= hosted.most_at_once:
                raise ApiError(
                    "ThrottlingException", f"endpoint {name}: {hosted.most_at_once} requests are in progress"
                )
            hosted.in_flight += 1
        try:
            yield
        finally:
            with self._lock:
                hosted.in_flight -= 1

    def _host(self, name: str) -> None:
        try:
            while self._is_wanted(name):
                self._run_container(name)
        except StartInterrupted:
            LOG.info("endpoint %s is not needed any more", name)
        except (Unhealthy, *CAUSED_BY_THE_REQUEST) as error:
            self._fail(name, str(error))
        except Exception as error:  # whatever fails, the endpoint needs its status: callers wait for it
            LOG.exception("endpoint %s could not be hosted", name)
            self._fail(name, internal_error(error))
        finally:
            self._write(lambda: self._leave(name))

    def _fail(self, name: str, reason: str) -> None:
        """Stores the failure, except while the service ends: its next start hosts the endpoint again."""
        if not self._ending.is_set():
            self._write(lambda: self.move(name, EndpointStatus.FAILED, reason))

    def _leave(self, name: str) -> None:
        with self._lock:
            self._threads.pop(name, None)
            gone = self._store.get(Endpoint, name)
        if gone is not None and gone.status is EndpointStatus.DELETING:
            self._store.remove(gone)

    def _run_container(self, name: str) -> None:
        """Runs one container. Returns when the endpoint is deleted, or when the container ends, to start another."""
        variant = self._variant(name)
        log_to = LogDestination(group=f"{LOG_GROUP}/{name}", stream=variant["VariantName"])
        container = self._container(variant["ModelName"], f"endpoints/{name}", log_to)
        with container:
            try:
                container.start(lambda: not self._is_wanted(name))
            except ContainerFailed as error:
                reason = UNHEALTHY.format(variant=variant["VariantName"])
                raise Unhealthy(with_last_lines(reason, error)) from error
            with self._lock:
                most_at_once = variant.get("ServerlessConfig", {}).get("MaxConcurrency")
                self._hosted[name] = _RunningContainer(container=container, most_at_once=most_at_once)
            self.move(name, EndpointStatus.IN_SERVICE)
            try:
                while self._is_wanted(name) and not container.has_ended():
                    self._ending.wait(LOOK_AGAIN_SECONDS)
            finally:
                with self._lock:
                    self._hosted.pop(name, None)

    def _is_wanted(self, name: str) -> bool:
        found = self._store.get(Endpoint, name)
        return not self._ending.is_set() and found is not None and found.status is not EndpointStatus.DELETING

    def _variant(self, name: str) -> Mapping[str, Any]:
        endpoint = self._store.get(Endpoint, name)
        config = self._store.get(EndpointConfig, endpoint.request["EndpointConfigName"]) if endpoint else None
        if config is None:
            raise UnsupportedJob(f"endpoint {name}: its endpoint configuration does not exist any more")
        variant: Mapping[str, Any] = config.request["ProductionVariants"][0]
        return variant
