"""From SageMaker's descriptions and events of endpoints and transform jobs to this project's types."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from traindyno.core.lab_names import jobs_prefix

ENDPOINT_CHANGE = "SageMaker Endpoint State Change"
TRANSFORM_CHANGE = "SageMaker Transform Job State Change"
ENDPOINT_LOG_GROUP = "/aws/sagemaker/Endpoints"
TRANSFORM_LOG_GROUP = "/aws/sagemaker/TransformJobs"
IN_SERVICE = "InService"
FAILED_ENDPOINT = frozenset({"Failed", "OutOfService"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingState:
    """``is_ready``: the endpoint is in service, or the transform job has completed.

    ``failure`` is set if it has failed or was stopped. ``seconds``: how long a transform job's instances worked.
    """

    is_ready: bool
    failure: str | None
    seconds: float | None = None

    @property
    def is_settled(self) -> bool:
        return self.is_ready or self.failure is not None


def read_endpoint(description: Mapping[str, Any]) -> ServingState:
    status = description["EndpointStatus"]
    failed = status in FAILED_ENDPOINT
    reason = description.get("FailureReason") or f"SageMaker ended the endpoint as {status} and gave no reason"
    return ServingState(is_ready=status == IN_SERVICE, failure=reason if failed else None)


def read_transform(description: Mapping[str, Any]) -> ServingState:
    status = description["TransformJobStatus"]
    begin, end = description.get("TransformStartTime"), description.get("TransformEndTime")
    seconds = (end - begin).total_seconds() if begin and end else None
    failed = status in {"Failed", "Stopped"}
    reason = description.get("FailureReason") or f"the transform job ended as {status}"
    return ServingState(is_ready=status == "Completed", failure=reason if failed else None, seconds=seconds)


def changed_endpoints_of(lab: str) -> dict[str, Any]:
    """The ``detail`` pattern of a rule that matches one lab's endpoints. Their status is read when it arrives."""
    return {"EndpointName": [{"prefix": jobs_prefix(lab)}]}


def changed_transforms_of(lab: str) -> dict[str, Any]:
    return {"TransformJobName": [{"prefix": jobs_prefix(lab)}]}


def deployment_name_in(event: Mapping[str, Any]) -> str:
    """The endpoint or transform job of an event."""
    detail = event["detail"]
    return str(detail.get("EndpointName") or detail["TransformJobName"])
