"""SageMaker's models, endpoints and transform jobs; AWS's errors become this project's."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from botocore.exceptions import ClientError

from traindyno.aws.client_errors import (
    AwsError,
    error_code,
    error_message,
    is_access_denied,
    temporary,
)
from traindyno.core.errors import Throttled, TraindynoError
from traindyno.sagemaker.serving.serving_description import ServingState, read_endpoint, read_transform
from traindyno.sagemaker.serving.serving_request import invocation

if TYPE_CHECKING:
    from mypy_boto3_sagemaker import SageMakerClient

TAKEN = frozenset({"ResourceInUse"})
TAKEN_TEXT = ("already existing", "already exists", "must be unique")
# A serverless endpoint answers with this message while its capacity starts.
STARTING = "ModelNotReadyException"
# DescribeEndpoint and similar operations answer an unknown name with a validation error.
UNKNOWN_TEXT = ("could not find", "not found", "does not exist")


class DeploymentRefused(TraindynoError):
    """SageMaker refuses this model, endpoint or transform job; a repeated request is refused too."""


class InvocationFailed(TraindynoError):
    """The endpoint did not answer a request, or answered with an error."""


class RuntimeClient(Protocol):
    """The call of boto3's ``sagemaker-runtime`` client that is used here."""

    def invoke_endpoint(self, **request: Any) -> Any: ...


class Endpoints:
    def __init__(self, sagemaker: "SageMakerClient") -> None:
        self._sagemaker = sagemaker

    def create_model(self, request: Mapping[str, Any]) -> None:
        """Safe to repeat, like every function of this module."""
        _create(lambda: self._sagemaker.create_model(**request), "model")

    def create_endpoint(self, config: Mapping[str, Any], endpoint: Mapping[str, Any]) -> None:
        _create(lambda: self._sagemaker.create_endpoint_config(**config), "endpoint configuration")
        _create(lambda: self._sagemaker.create_endpoint(**endpoint), "endpoint")

    def create_transform(self, request: Mapping[str, Any]) -> None:
        _create(lambda: self._sagemaker.create_transform_job(**request), "transform job")

    def find_endpoint(self, name: str) -> ServingState | None:
        """None if the endpoint does not exist."""
        found = _find(lambda: self._sagemaker.describe_endpoint(EndpointName=name))
        return None if found is None else read_endpoint(found)

    def find_transform(self, name: str) -> ServingState | None:
        found = _find(lambda: self._sagemaker.describe_transform_job(TransformJobName=name))
        return None if found is None else read_transform(found)

    def delete_endpoint(self, name: str) -> None:
        """Delete the endpoint and its configuration. Safe to repeat: resources that no longer exist are ignored."""
        _find(lambda: self._sagemaker.delete_endpoint(EndpointName=name))
        _find(lambda: self._sagemaker.delete_endpoint_config(EndpointConfigName=name))

    def stop_transform(self, name: str) -> None:
        """Stop the job; a job that has ended is ignored."""
        _find(lambda: self._sagemaker.stop_transform_job(TransformJobName=name), passes_over=("rejected",))

    def delete_model(self, name: str) -> None:
        _find(lambda: self._sagemaker.delete_model(ModelName=name))


class Invocations:
    def __init__(self, runtime: RuntimeClient) -> None:
        self._runtime = runtime

    def ask(self, endpoint_name: str, body: bytes) -> bytes:
        """The endpoint's answer. Raises Throttled or ServiceFault if a repeat may succeed, else InvocationFailed."""
        about = f"endpoint {endpoint_name}"
        try:
            answer = self._runtime.invoke_endpoint(**invocation(endpoint_name, body))
            return bytes(answer["Body"].read())
        except AwsError as error:
            if isinstance(error, ClientError) and error_code(error) == STARTING:
                raise Throttled(f"{about}: {error}") from error
            raise temporary(error, about) or InvocationFailed(f"{about}: {error}") from error


def _create(call: Callable[[], object], what: str) -> None:
    try:
        call()
    except AwsError as error:
        if isinstance(error, ClientError) and _is_taken(error):
            return  # a repeated delivery of the same deployment
        if retried := temporary(error, what):
            raise retried from error
        hint = "; the role or user lacks a permission" if _is_denied(error) else ""
        raise DeploymentRefused(f"SageMaker refused the {what}: {error}{hint}") from error


def _find(call: Callable[[], Any], *, passes_over: tuple[str, ...] = ()) -> Any | None:
    try:
        return call()
    except ClientError as error:
        text = error_message(error).lower()
        if error_code(error) == "ResourceNotFound":
            return None
        if error_code(error) == "ValidationException" and any(part in text for part in (*UNKNOWN_TEXT, *passes_over)):
            return None
        raise


def _is_taken(error: ClientError) -> bool:
    text = error_message(error).lower()
    return error_code(error) in TAKEN or any(part in text for part in TAKEN_TEXT)


def _is_denied(error: Exception) -> bool:
    return isinstance(error, ClientError) and is_access_denied(error)
