"""Answers SageMaker's operations on models, endpoint configurations and endpoints, and hosts the
endpoints.
"""

import threading
from collections.abc import Mapping
from typing import Any

from localcloud.environment import ACCOUNT, REGION
from localcloud.sagemaker_service.api_error import (
    ApiError,
    Operation,
    tag_list,
    tags_of,
    validation_error,
)
from localcloud.sagemaker_service.clock import SystemClock
from localcloud.sagemaker_service.hosting.model_container import ContainerFailed, ModelContainer
from localcloud.sagemaker_service.instance_table import LOCAL_TYPES, is_local
from localcloud.sagemaker_service.jobs.job import FAILURE_REASON_LIMIT
from localcloud.sagemaker_service.jobs.job_store import JobStore
from localcloud.sagemaker_service.service_health import internal_error
from localcloud.sagemaker_service.settings import ServiceSettings
from localcloud.sagemaker_service.storage.s3_transfer import S3Transfer

# The members of a kind's requests and answers, by the kind's part of an ARN
KINDS = {"model": "Model", "endpoint-config": "EndpointConfig", "endpoint": "Endpoint"}
# SageMaker's wordings
UNHEALTHY = (
    "The primary container for production variant AllTraffic did not pass the ping health check. "
    "Please check CloudWatch logs for this endpoint. The container's last lines:\n{}"
)
REFUSED = 'Received server error ({}) from primary with message "{}".'
Document = Mapping[str, Any]


class HostingService:
    """Each endpoint has a process, which ``close`` ends; the next start hosts the endpoint
    again.
    """

    def __init__(
        self,
        *,
        store: JobStore,
        transfer: S3Transfer,
        settings: ServiceSettings,
        clock: SystemClock,
    ) -> None:
        self._store = store
        self._transfer = transfer
        self._settings = settings
        self._clock = clock
        self._containers: dict[str, ModelContainer] = {}

    def start(self) -> None:
        for name in self._store.documents("endpoint"):
            self._host(name)

    def close(self) -> None:
        for container in self._containers.values():
            container.close()

    def operations(self, list_other_tags: Operation) -> dict[str, Operation]:
        """The operations by name; ``list_other_tags`` answers ListTags for other resources."""

        def list_tags(request: Document) -> Document:
            for endpoint in self._store.documents("endpoint").values():
                if endpoint["EndpointArn"] == request["ResourceArn"]:
                    return tag_list(tags_of(endpoint))
            return list_other_tags(request)

        def list_endpoints(request: Document) -> Document:
            endpoints = self._store.documents("endpoint").items()
            return {
                "Endpoints": [
                    _described(endpoint)
                    for name, endpoint in endpoints
                    if request.get("NameContains", "") in name
                ]
            }

        return {
            "CreateModel": lambda request: self._put_new("model", request),
            "CreateEndpointConfig": self._create_config,
            "CreateEndpoint": self._create_endpoint,
            "DeleteModel": lambda request: self._remove("model", request),
            "DeleteEndpointConfig": lambda request: self._remove("endpoint-config", request),
            "DeleteEndpoint": self._delete_endpoint,
            "DescribeEndpoint": lambda request: _described(
                self._existing("endpoint", request["EndpointName"])
            ),
            "ListEndpoints": list_endpoints,
            "ListTags": list_tags,
        }

    def invoke(self, name: str, body: bytes) -> bytes:
        """Answers InvokeEndpoint of ``sagemaker-runtime``.

        Raises ApiError with that service's own errors.
        """
        if self._store.documents("endpoint").get(name, {}).get("EndpointStatus") != "InService":
            raise ApiError("ValidationError", f"Endpoint {name} of account {ACCOUNT} not found.")
        try:
            status, answer = self._containers[name].invoke(body)
        except ContainerFailed as error:
            status = 504
            answer = f"Your invocation timed out or was cut off: {error}"
        if status == 200:
            return answer.encode()
        members = {"OriginalStatusCode": status, "OriginalMessage": answer}
        raise ApiError(
            "ModelError", REFUSED.format(status, answer), http_status=424, members=members
        )

    def _create_config(self, request: Document) -> Document:
        variant, *others = request["ProductionVariants"]
        self._existing("model", variant.get("ModelName", ""))
        instance_type = variant.get("InstanceType") or ""
        if others or not is_local(instance_type):
            offered = ", ".join(sorted(LOCAL_TYPES))
            raise validation_error(
                f"InstanceType {instance_type}: this local service serves one variant on {offered} "
                "and simulates none"
            )
        return self._put_new("endpoint-config", request)

    def _create_endpoint(self, request: Document) -> Document:
        self._existing("endpoint-config", request["EndpointConfigName"])
        answer = self._put_new("endpoint", {**request, "EndpointStatus": "Creating"})
        self._host(request["EndpointName"])
        return answer

    def _delete_endpoint(self, request: Document) -> Document:
        endpoint = self._existing("endpoint", request["EndpointName"])
        if endpoint["EndpointStatus"] == "Creating":
            raise validation_error(
                f'Cannot update in-progress endpoint "{endpoint["EndpointArn"]}".'
            )
        container = self._containers.pop(endpoint["EndpointName"], None)
        if container is not None:
            container.close()
        return self._remove("endpoint", request)

    def _remove(self, kind: str, request: Document) -> Document:
        name = request[f"{KINDS[kind]}Name"]
        self._existing(kind, name)
        self._store.write_document(kind, name, None)
        return {}

    def _existing(self, kind: str, name: str) -> Document:
        document: Document | None = self._store.documents(kind).get(name)
        if document is None:
            raise validation_error(
                f'Could not find {kind.replace("-", " ")} "{self._arn(kind, name)}".'
            )
        return document

    def _put_new(self, kind: str, request: Document) -> Document:
        name = request[f"{KINDS[kind]}Name"]
        now = self._clock.now_ms() / 1000
        arn = {f"{KINDS[kind]}Arn": self._arn(kind, name)}
        if name in self._store.documents(kind):
            raise validation_error(
                f"Cannot create already existing {kind.replace('-', ' ')} {name!r}."
            )
        self._store.write_document(
            kind, name, {**request, **arn, "CreationTime": now, "LastModifiedTime": now}
        )
        return arn

    @staticmethod
    def _arn(kind: str, name: str) -> str:
        return f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:{kind}/{name.lower()}"

    def _host(self, name: str) -> None:
        """Starts the endpoint's process in the background."""
        endpoint = {**self._existing("endpoint", name), "EndpointStatus": "Creating"}
        self._store.write_document("endpoint", name, endpoint)

        def start() -> None:
            end = {"EndpointStatus": "Failed"}
            try:
                config = self._existing("endpoint-config", endpoint["EndpointConfigName"])
                model = self._existing("model", config["ProductionVariants"][0]["ModelName"])
                folder = self._settings.state_folder / "endpoints" / name
                container = ModelContainer(
                    model["PrimaryContainer"], folder, settings=self._settings
                )
                self._containers[name] = container
                container.start(self._transfer)
                end = {"EndpointStatus": "InService"}
            except ContainerFailed as error:
                end["FailureReason"] = UNHEALTHY.format(
                    str(error)[-(FAILURE_REASON_LIMIT - len(UNHEALTHY)) :]
                )
            except Exception as error:  # noqa: BLE001 -- the endpoint needs its status: callers wait for it
                end["FailureReason"] = internal_error(error)
            now = self._clock.now_ms() / 1000
            self._store.write_document(
                "endpoint", name, {**endpoint, **end, "LastModifiedTime": now}
            )

        threading.Thread(target=start, name=f"endpoint {name}", daemon=True).start()


def _described(endpoint: Document) -> Document:
    return {member: value for member, value in endpoint.items() if member != "Tags"}
