"""Answers SageMaker's operations on models, endpoint configurations and endpoints, and hosts the endpoints."""

import logging
import threading
from collections.abc import Mapping
from typing import Any

from localcloud.sagemaker_service.api_error import ApiError, Operation, page_of, tag_list, tags_of, validation_error
from localcloud.sagemaker_service.clock import SystemClock
from localcloud.sagemaker_service.host.toolkit import UnsupportedJob
from localcloud.sagemaker_service.hosting.model_container import ContainerFailed, ModelContainer
from localcloud.sagemaker_service.instance_table import LOCAL_TYPES, is_local
from localcloud.sagemaker_service.jobs.job import FAILURE_REASON_LIMIT
from localcloud.sagemaker_service.jobs.job_store import JobStore
from localcloud.sagemaker_service.service_health import ServiceHealth, internal_error, write_until_done
from localcloud.sagemaker_service.settings import ServiceSettings
from localcloud.sagemaker_service.storage.log_shipping import LogClient
from localcloud.sagemaker_service.storage.s3_transfer import DataUnavailable, S3Transfer
from localcloud.sagemaker_service.storage.safe_paths import UnsafePath

LOG = logging.getLogger(__name__)
LOG_GROUP = "/aws/sagemaker/Endpoints"
LOOK_AGAIN_SECONDS = 0.5
# The members of a kind's requests and answers, by the kind's part of an ARN
KINDS = {"model": "Model", "endpoint-config": "EndpointConfig", "endpoint": "Endpoint"}
# SageMaker's wordings
UNHEALTHY = (
    "The primary container for production variant AllTraffic did not pass the ping health check. "
    "Please check CloudWatch logs for this endpoint. The container's last lines:\n{}"
)
REFUSED = (
    'Received server error ({}) from primary with message "{}". See /aws/sagemaker/Endpoints/{} in CloudWatch Logs for '
    "more information."
)
Document = Mapping[str, Any]


class HostingService:
    """Each endpoint has a thread and a container, which ``close`` ends; the next start hosts the endpoint again."""

    def __init__(
        self,
        *,
        store: JobStore,
        transfer: S3Transfer,
        logs: LogClient,
        settings: ServiceSettings,
        clock: SystemClock,
        health: ServiceHealth,
    ) -> None:
        self._store, self._transfer, self._logs, self._settings = store, transfer, logs, settings
        self._clock, self._health = clock, health
        self._lock, self._ending = threading.Lock(), threading.Event()
        self._threads: dict[str, threading.Thread] = {}
        self._containers: dict[str, ModelContainer] = {}

    def start(self) -> None:
        """Hosts the endpoints that existed when the service ended."""
        for name, endpoint in self._store.documents("endpoint").items():
            if endpoint["EndpointStatus"] == "Deleting":
                self._store.write_document("endpoint", name, None)
            elif endpoint["EndpointStatus"] != "Failed":
                self._start_thread(name)

    def close(self) -> None:
        self._ending.set()
        with self._lock:
            threads = list(self._threads.values())
        for thread in threads:
            thread.join()

    def operations(self, list_other_tags: Operation) -> dict[str, Operation]:
        """``list_other_tags`` answers ListTags for all other kinds of resources."""

        def list_tags(request: Document) -> Document:
            for each in self._store.documents("endpoint").values():
                if each["EndpointArn"] == request["ResourceArn"]:
                    return tag_list(tags_of(each))
            return list_other_tags(request)

        return {
            "CreateModel": self._create_model,
            "CreateEndpointConfig": self._create_config,
            "CreateEndpoint": self._create_endpoint,
            "DeleteModel": lambda request: self._remove("model", request),
            "DeleteEndpointConfig": lambda request: self._remove("endpoint-config", request),
            "DeleteEndpoint": self._delete_endpoint,
            "DescribeEndpoint": lambda request: _described(self._existing("endpoint", request["EndpointName"])),
            "ListEndpoints": self._list_endpoints,
            "ListTags": list_tags,
        }

    def invoke(self, name: str, body: bytes, headers: Mapping[str, str]) -> bytes:
        """Answers InvokeEndpoint of ``sagemaker-runtime``. Raises ApiError with that service's own errors."""
        if self._store.documents("endpoint").get(name, {}).get("EndpointStatus") != "InService":
            raise ApiError("ValidationError", f"Endpoint {name} of account {self._settings.account_id} not found.")
        with self._lock:
            container = self._containers.get(name)
        if container is None:
            raise ApiError("ServiceUnavailable", f"endpoint {name} has no container that answers", http_status=503)
        try:
            status, answer = container.invoke(body, headers)
        except ContainerFailed as error:
            status, answer = 0, f"Your invocation timed out or was cut off: {error}".encode()
        if status == 200:
            return answer
        message = answer.decode(errors="replace")
        members = {"OriginalStatusCode": status or 504, "OriginalMessage": message}
        raise ApiError("ModelError", REFUSED.format(status, message, name), http_status=424, members=members)

    def _create_model(self, request: Document) -> Document:
        container = request.get("PrimaryContainer") or {}
        if not container.get("Image") or not container.get("ModelDataUrl"):
            raise validation_error("this local service serves one PrimaryContainer with Image and ModelDataUrl")
        return self._put_new("model", request)

    def _create_config(self, request: Document) -> Document:
        variant, *others = request["ProductionVariants"]
        self._existing("model", variant.get("ModelName", ""))
        instance_type = variant.get("InstanceType")
        if others or not instance_type or not is_local(instance_type):
            offered = ", ".join(sorted(LOCAL_TYPES))
            raise validation_error(
                f"InstanceType {instance_type}: this local service serves one variant on {offered} and simulates none"
            )
        return self._put_new("endpoint-config", request)

    def _create_endpoint(self, request: Document) -> Document:
        self._existing("endpoint-config", request["EndpointConfigName"])
        answer = self._put_new("endpoint", {**request, "EndpointStatus": "Creating"})
        self._start_thread(request["EndpointName"])
        return answer

    def _delete_endpoint(self, request: Document) -> Document:
        """The endpoint's thread ends and removes it. One without a thread is removed immediately."""
        name = request["EndpointName"]
        endpoint = self._existing("endpoint", name)
        if endpoint["EndpointStatus"] == "Creating":
            raise validation_error(f'Cannot update in-progress endpoint "{endpoint["EndpointArn"]}".')
        self._move(name, "Deleting")
        with self._lock:
            is_hosted = name in self._threads
        if not is_hosted:
            self._store.write_document("endpoint", name, None)
        return {}

    def _list_endpoints(self, request: Document) -> Document:
        rows = [
            _described(endpoint)
            for name, endpoint in reversed(self._store.documents("endpoint").items())
            if request.get("NameContains", "") in name
            and request.get("StatusEquals", endpoint["EndpointStatus"]) == endpoint["EndpointStatus"]
        ]
        token = validation_error("The pagination token is invalid")
        return page_of(rows, request, member="Endpoints", default_size=10, invalid_token=token)

    def _remove(self, kind: str, request: Document) -> Document:
        name = request[f"{KINDS[kind]}Name"]
        self._existing(kind, name)
        self._store.write_document(kind, name, None)
        return {}

    def _existing(self, kind: str, name: str) -> Document:
        found: Document | None = self._store.documents(kind).get(name)
        if found is None:
            raise validation_error(f'Could not find {kind.replace("-", " ")} "{self._arn(kind, name)}".')
        return found

    def _put_new(self, kind: str, request: Document) -> Document:
        name, now = request[f"{KINDS[kind]}Name"], self._clock.now_ms() / 1000
        arn = {f"{KINDS[kind]}Arn": self._arn(kind, name)}
        if name in self._store.documents(kind):
            raise validation_error(f"Cannot create already existing {kind.replace('-', ' ')} {name!r}.")
        self._store.write_document(kind, name, {**request, **arn, "CreationTime": now, "LastModifiedTime": now})
        return arn

    def _arn(self, kind: str, name: str) -> str:
        return f"arn:aws:sagemaker:{self._settings.region}:{self._settings.account_id}:{kind}/{name.lower()}"

    def _move(self, name: str, status: str, failure_reason: str | None = None) -> None:
        with self._lock:
            found = self._store.documents("endpoint").get(name)
            if found is None or found["EndpointStatus"] in {"Deleting", status}:
                return
            reason = {"FailureReason": failure_reason[:FAILURE_REASON_LIMIT]} if failure_reason else {}
            moved = {**found, "EndpointStatus": status, "LastModifiedTime": self._clock.now_ms() / 1000, **reason}
            self._store.write_document("endpoint", name, moved)

    def _start_thread(self, name: str) -> None:
        thread = threading.Thread(target=self._host, args=(name,), name=f"endpoint {name}", daemon=True)
        with self._lock:
            self._threads[name] = thread
        thread.start()

    def _host(self, name: str) -> None:
        reason = None
        try:
            while self._is_wanted(name):
                self._run_container(name)
        except (DataUnavailable, UnsupportedJob, UnsafePath) as error:  # caused by the request or the data
            reason = str(error)
        except ContainerFailed as error:
            reason = UNHEALTHY.format(str(error)[-(FAILURE_REASON_LIMIT - len(UNHEALTHY)) :])
        except Exception as error:  # whatever fails, the endpoint needs its status: callers wait for it
            LOG.exception("endpoint %s could not be hosted", name)
            reason = internal_error(error)

        def leave() -> None:
            if reason is not None and not self._ending.is_set():
                self._move(name, "Failed", reason)
            with self._lock:
                self._threads.pop(name, None)
                endpoint = self._store.documents("endpoint").get(name)
            if endpoint is not None and endpoint["EndpointStatus"] == "Deleting":
                self._store.write_document("endpoint", name, None)

        write_until_done(leave, health=self._health, part="record of endpoints", ending=self._ending)

    def _run_container(self, name: str) -> None:
        """Runs one container. Returns when the endpoint is deleted, or when the container ends, to start another."""
        endpoint = self._existing("endpoint", name)
        config = self._store.documents("endpoint-config").get(endpoint["EndpointConfigName"], {})
        models = self._store.documents("model")
        model = models.get(config["ProductionVariants"][0]["ModelName"]) if config else None
        if model is None:
            raise UnsupportedJob(f"endpoint {name}: its configuration or its model does not exist any more")
        folder = self._settings.state_folder / "endpoints" / name
        container = ModelContainer(model["PrimaryContainer"], folder, transfer=self._transfer, settings=self._settings)
        try:
            group = f"{LOG_GROUP}/{name}"
            container.start(lambda: not self._is_wanted(name), self._logs, log_group=group, stream="AllTraffic")
            with self._lock:
                self._containers[name] = container
            self._move(name, "InService")
            while self._is_wanted(name) and not container.has_ended():
                self._ending.wait(LOOK_AGAIN_SECONDS)
        finally:
            with self._lock:
                self._containers.pop(name, None)
            container.close()

    def _is_wanted(self, name: str) -> bool:
        found = self._store.documents("endpoint").get(name)
        return not self._ending.is_set() and found is not None and found["EndpointStatus"] != "Deleting"


def _described(endpoint: Document) -> Document:
    return {member: value for member, value in endpoint.items() if member != "Tags"}
