"""Answers SageMaker's operations on models, endpoint configurations and endpoints."""

from collections.abc import Mapping
from typing import Any

from localcloud.sagemaker_service.api.hosting_records import HostingRecords
from localcloud.sagemaker_service.api.operations import Operation, page_of
from localcloud.sagemaker_service.api_error import ApiError, validation_error
from localcloud.sagemaker_service.hosting.endpoint_engine import EndpointEngine
from localcloud.sagemaker_service.hosting.hosting import Endpoint, EndpointConfig, EndpointStatus, HostedModel, Record
from localcloud.sagemaker_service.hosting.hosting_view import described_config, described_endpoint, described_model
from localcloud.sagemaker_service.hosting.model_container import Invocation, check_image
from localcloud.sagemaker_service.instance_table import LOCAL_TYPES, is_local

INVALID_TOKEN = validation_error("The pagination token is invalid")
GIB_IN_MIB = 1024
SERVED_HERE = f"this local service serves models on {', '.join(sorted(LOCAL_TYPES))} and simulates no endpoint"


class HostingApi:
    def __init__(self, records: HostingRecords, engine: EndpointEngine) -> None:
        self._records = records
        self._store = records.store
        self._engine = engine

    def operations(self) -> dict[str, Operation]:
        return {
            "CreateModel": self._create_model,
            "DescribeModel": lambda request: described_model(self._records.existing(HostedModel, request["ModelName"])),
            "DeleteModel": lambda request: self._remove(HostedModel, request["ModelName"]),
            "CreateEndpointConfig": self._create_config,
            "DescribeEndpointConfig": lambda request: described_config(
                self._records.existing(EndpointConfig, request["EndpointConfigName"])
            ),
            "DeleteEndpointConfig": lambda request: self._remove(EndpointConfig, request["EndpointConfigName"]),
            "CreateEndpoint": self._create_endpoint,
            "DescribeEndpoint": self._describe_endpoint,
            "DeleteEndpoint": self._delete_endpoint,
            "ListEndpoints": self._list_endpoints,
        }

    def invoke(self, name: str, body: bytes, headers: Mapping[str, str]) -> Invocation:
        """Answers InvokeEndpoint of ``sagemaker-runtime``. Raises ApiError with that service's own errors."""
        endpoint = self._store.get(Endpoint, name)
        if endpoint is None or endpoint.status is not EndpointStatus.IN_SERVICE:
            raise ApiError("ValidationError", f"Endpoint {name} of account {self._records.account_id} not found.")
        try:
            answer = self._engine.invoke(name, body, headers)
        except OSError as error:
            raise self._model_error(name, 0, f"Your invocation timed out or was cut off: {error}") from error
        if answer.status != 200:
            raise self._model_error(name, answer.status, answer.body.decode(errors="replace"))
        return answer

    def _model_error(self, name: str, status: int, message: str) -> ApiError:
        # This is SageMaker's wording; the container's message contains the cause.
        text = (
            f'Received server error ({status}) from primary with message "{message}". See '
            f"/aws/sagemaker/Endpoints/{name} in CloudWatch Logs for more information."
        )
        return ApiError(
            "ModelError",
            text,
            http_status=424,
            members={"OriginalStatusCode": status or 504, "OriginalMessage": message},
        )

    def _create_model(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        model = HostedModel(**self._records.new(HostedModel, request["ModelName"], request))
        if request.get("Containers") or request.get("InferenceExecutionConfig"):
            raise validation_error(
                "Containers are not offered: this local service serves models of one PrimaryContainer"
            )
        check_image(model)
        self._store.put(model)
        return {"ModelArn": model.arn}

    def _create_config(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        config = EndpointConfig(**self._records.new(EndpointConfig, request["EndpointConfigName"], request))
        if len(request["ProductionVariants"]) > 1 or request.get("ShadowProductionVariants"):
            raise validation_error("Several ProductionVariants are not offered: this local service hosts one")
        for member in ("AsyncInferenceConfig", "ExplainerConfig"):
            if member in request:
                raise validation_error(f"{member} is not offered by this local service")
        if request.get("DataCaptureConfig", {}).get("EnableCapture"):
            raise validation_error("DataCaptureConfig: this local service captures no data")
        (variant,) = request["ProductionVariants"]
        model = self._records.existing(HostedModel, variant.get("ModelName", ""))
        given = [name for name in ("InstanceType", "ServerlessConfig") if variant.get(name)]
        if len(given) != 1:
            raise validation_error("A variant must have exactly one of InstanceType and ServerlessConfig")
        check_local(variant.get("InstanceType"))
        if "ServerlessConfig" in variant:
            _check_serverless(variant["ServerlessConfig"], model)
        self._store.put(config)
        return {"EndpointConfigArn": config.arn}

    def _create_endpoint(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        self._records.existing(EndpointConfig, request["EndpointConfigName"])
        new = self._records.new(Endpoint, request["EndpointName"], request)
        endpoint = Endpoint(**new, status=EndpointStatus.CREATING, modified_ms=new["created_ms"])
        self._store.put(endpoint)
        self._engine.host(endpoint.name)
        return {"EndpointArn": endpoint.arn}

    def _describe_endpoint(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        endpoint = self._records.existing(Endpoint, request["EndpointName"])
        return described_endpoint(endpoint, self._store.get(EndpointConfig, endpoint.request["EndpointConfigName"]))

    def _delete_endpoint(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        self._engine.delete(self._records.existing(Endpoint, request["EndpointName"]).name)
        return {}

    def _list_endpoints(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        rows = [
            {
                "EndpointName": endpoint.name,
                "EndpointArn": endpoint.arn,
                "EndpointStatus": endpoint.status,
                "CreationTime": endpoint.created_ms / 1000,
                "LastModifiedTime": endpoint.modified_ms / 1000,
            }
            for endpoint in reversed(self._store.all(Endpoint))
            if request.get("NameContains", "") in endpoint.name
            and request.get("StatusEquals", endpoint.status) == endpoint.status
        ]
        return page_of(rows, request, member="Endpoints", default_size=10, invalid_token=INVALID_TOKEN)

    def _remove(self, kind: type[Record], name: str) -> Mapping[str, Any]:
        self._store.remove(self._records.existing(kind, name))
        return {}


def _check_serverless(config: Mapping[str, Any], model: HostedModel) -> None:
    if config["MemorySizeInMB"] % GIB_IN_MIB:
        raise validation_error(f"MemorySizeInMB {config['MemorySizeInMB']} is no multiple of {GIB_IN_MIB}")
    if "VpcConfig" in model.request:
        raise validation_error(f"model {model.name} has a VpcConfig, which a serverless endpoint does not support")


def check_local(instance_type: str | None) -> None:
    if instance_type is not None and not is_local(instance_type):
        raise validation_error(f"{instance_type}: {SERVED_HERE}")
