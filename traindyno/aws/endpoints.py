"""SageMaker's models, endpoint configurations and endpoints; AWS's errors become this project's."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from traindyno.aws.client_errors import AwsError, error_code, error_message
from traindyno.core.errors import TraindynoError
from traindyno.core.lab_names import LAB_TAG, jobs_prefix
from traindyno.sagemaker.serving import EndpointState

if TYPE_CHECKING:
    from mypy_boto3_sagemaker import SageMakerClient

JSON = "application/json"
# SageMaker answers with a validation error where a name is taken, or unknown.
TAKEN_TEXT = ("already existing", "already exists", "must be unique")
UNKNOWN_TEXT = ("could not find", "not found", "does not exist")


class DeploymentRefused(TraindynoError):
    """SageMaker refuses this model or endpoint; a repeated request is refused too."""


class EndpointBusy(TraindynoError):
    """SageMaker deletes no endpoint while it creates or changes it."""


class InvocationFailed(TraindynoError):
    """The endpoint did not answer a request, or answered with an error."""


class Endpoints:
    def __init__(self, sagemaker: "SageMakerClient", runtime: Callable[[], Any]) -> None:
        self._sagemaker = sagemaker
        self._runtime = runtime

    def create(
        self, model: Mapping[str, Any], config: Mapping[str, Any], endpoint: Mapping[str, Any]
    ) -> None:
        _create(lambda: self._sagemaker.create_model(**model), "model")
        _create(lambda: self._sagemaker.create_endpoint_config(**config), "endpoint configuration")
        _create(lambda: self._sagemaker.create_endpoint(**endpoint), "endpoint")

    def list_named(self, lab: str) -> list[EndpointState]:
        """Endpoints whose names begin with the lab's prefix, whoever made them."""
        prefix = jobs_prefix(lab)
        pages = self._sagemaker.get_paginator("list_endpoints").paginate(NameContains=prefix)
        states = [EndpointState.of(endpoint) for page in pages for endpoint in page["Endpoints"]]
        return [state for state in states if state.name.startswith(prefix)]

    def find(self, name: str) -> EndpointState | None:
        description = _find(lambda: self._sagemaker.describe_endpoint(EndpointName=name))
        return None if description is None else EndpointState.of(description)

    def tags(self, state: EndpointState) -> dict[str, str]:
        answer = _find(lambda: self._sagemaker.list_tags(ResourceArn=state.arn))
        return {tag["Key"]: tag["Value"] for tag in answer["Tags"]} if answer else {}

    def delete(self, name: str, *, lab: str) -> bool:
        """Delete the endpoint, its configuration and its model; what does not exist is passed over.

        False if an endpoint of this name does not have the lab's tag: then all stays. Raises
        EndpointBusy.
        """
        state = self.find(name)
        if state is not None and self.tags(state).get(LAB_TAG) != lab:
            return False
        if state is not None and state.is_busy:
            raise EndpointBusy(
                f"{name} is {state.status}, and SageMaker deletes no endpoint before that has ended"
            )
        if state is not None and state.status != "Deleting":
            _find(lambda: self._sagemaker.delete_endpoint(EndpointName=name))
        _find(lambda: self._sagemaker.delete_endpoint_config(EndpointConfigName=name))
        _find(lambda: self._sagemaker.delete_model(ModelName=name))
        return True

    def ask(self, name: str, body: bytes) -> bytes:
        try:
            answer = self._runtime().invoke_endpoint(
                EndpointName=name, Body=body, ContentType=JSON, Accept=JSON
            )
            return bytes(answer["Body"].read())
        except AwsError as error:
            raise InvocationFailed(f"endpoint {name}: {error}") from error


def _create(call: Callable[[], object], what: str) -> None:
    try:
        call()
    except AwsError as error:
        if isinstance(error, ClientError) and any(
            part in error_message(error).lower() for part in TAKEN_TEXT
        ):
            return  # botocore has sent it twice
        raise DeploymentRefused(f"SageMaker refused the {what}: {error}") from error


def _find(call: Callable[[], Any]) -> Any | None:
    try:
        return call()
    except ClientError as error:
        is_unknown = any(part in error_message(error).lower() for part in UNKNOWN_TEXT)
        if error_code(error) == "ResourceNotFound" or (
            error_code(error) == "ValidationException" and is_unknown
        ):
            return None
        raise
