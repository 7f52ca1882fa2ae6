from typing import Any

import boto3
import pytest
from botocore.exceptions import EndpointConnectionError

from tests.unit.stubbed import KEYS, sent_requests, stubbed
from traindyno.aws.training_jobs import JobRefused, TrainingJobs
from traindyno.core.errors import ServiceFault, SlotUnavailable, Throttled
from traindyno.core.jobs.outcome import Outcome

REQUEST: dict[str, Any] = {
    "TrainingJobName": "traindyno-a-1",
    "RoleArn": "arn:aws:iam::111111111111:role/training",
    "OutputDataConfig": {"S3OutputPath": "s3://results/output/"},
    "ResourceConfig": {"InstanceType": "ml.g5.xlarge", "InstanceCount": 2, "VolumeSizeInGB": 30},
    "StoppingCondition": {"MaxRuntimeInSeconds": 600},
}
ARN = "arn:aws:sagemaker:us-east-1:111111111111:training-job/traindyno-a-1"
LIMIT_TEXT = (
    "The account-level service limit 'ml.g5.xlarge for training job usage' is {limit} Instances, "
    "with current utilization of {used} Instances and a request delta of 2 Instances."
)


def start_with_error(code: str, message: str = "", status: int = 400) -> list[dict[str, Any]]:
    """The requests that were sent."""
    with stubbed("sagemaker") as (client, stubber):
        sent = sent_requests(client, "CreateTrainingJob")
        stubber.add_client_error("create_training_job", code, message, http_status_code=status)
        TrainingJobs(client).start(REQUEST)
    return sent


def test_a_job_is_started_with_the_request_as_it_is() -> None:
    with stubbed("sagemaker") as (client, stubber):
        sent = sent_requests(client, "CreateTrainingJob")
        stubber.add_response("create_training_job", {"TrainingJobArn": ARN})
        TrainingJobs(client).start(REQUEST)
    assert sent == [REQUEST]


def test_a_taken_name_belongs_to_the_job_of_an_earlier_call() -> None:
    assert start_with_error("ResourceInUse", "Training job names must be unique") == [REQUEST]


def test_a_used_up_limit_frees_again() -> None:
    with pytest.raises(SlotUnavailable, match="traindyno-a-1"):
        start_with_error("ResourceLimitExceeded", LIMIT_TEXT.format(limit=2, used=2))


def test_a_limit_below_the_need_of_one_job_is_a_result() -> None:
    with pytest.raises(JobRefused) as caught:
        start_with_error("ResourceLimitExceeded", LIMIT_TEXT.format(limit=1, used=0))
    assert caught.value.outcome is Outcome.QUOTA_EXCEEDED


@pytest.mark.parametrize(
    "code", ["ThrottlingException", "TooManyRequestsException", "RequestLimitExceeded"]
)
def test_throttling_has_its_own_class(code: str) -> None:
    with pytest.raises(Throttled):
        start_with_error(code, "Rate exceeded")


def test_a_fault_of_the_service_leaves_open_whether_the_job_exists() -> None:
    with pytest.raises(ServiceFault):
        start_with_error("InternalFailure", status=500)


def test_an_unreachable_service_is_a_service_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    with stubbed("sagemaker") as (client, _):

        def refuse(**_: Any) -> None:
            raise EndpointConnectionError(endpoint_url="http://127.0.0.1:9")

        monkeypatch.setattr(client, "create_training_job", refuse)
        with pytest.raises(ServiceFault):
            TrainingJobs(client).start(REQUEST)


@pytest.mark.parametrize(
    ("code", "message", "outcome"),
    [
        (
            "AccessDeniedException",
            "User is not authorized to perform: sagemaker:CreateTrainingJob",
            "permission_error",
        ),
        ("ValidationException", "Could not assume role arn:aws:iam::1:role/x", "permission_error"),
        ("ValidationException", "Cannot find image in ECR repository", "image_error"),
        ("ValidationException", "1 validation error detected", "internal_error"),
        ("ResourceNotFound", "no such training plan", "internal_error"),
    ],
)
def test_an_error_beyond_retries_is_a_result(code: str, message: str, outcome: str) -> None:
    with pytest.raises(JobRefused, match="traindyno-a-1") as caught:
        start_with_error(code, message)
    assert caught.value.outcome == outcome


def test_stopping_an_ended_job_is_nothing_to_do() -> None:
    with stubbed("sagemaker") as (client, stubber):
        stubber.add_response("stop_training_job", {}, {"TrainingJobName": "a"})
        stubber.add_client_error(
            "stop_training_job", "ValidationException", "The job is in a terminal state"
        )
        stubber.add_client_error("stop_training_job", "ThrottlingException")
        jobs = TrainingJobs(client)
        assert jobs.stop("a")
        assert not jobs.stop("b")
        with pytest.raises(Throttled):
            jobs.stop("c")


def test_jobs_at_work_are_listed_page_by_page_in_both_states() -> None:
    def page(*names: str) -> dict[str, Any]:
        time = 1_790_000_000
        return {
            "TrainingJobSummaries": [
                {
                    "TrainingJobName": name,
                    "TrainingJobArn": ARN,
                    "CreationTime": time,
                    "TrainingJobStatus": "InProgress",
                }
                for name in names
            ]
        }

    asked = {"NameContains": "traindyno-", "StatusEquals": "InProgress", "MaxResults": 100}
    with stubbed("sagemaker") as (client, stubber):
        stubber.add_response("list_training_jobs", {**page("a", "b"), "NextToken": "more"}, asked)
        dated = {"ResponseMetadata": {"HTTPHeaders": {"date": "Mon, 21 Sep 2026 14:23:20 GMT"}}}
        stubber.add_response(
            "list_training_jobs", {**page("c"), **dated}, {**asked, "NextToken": "more"}
        )
        stubber.add_response("list_training_jobs", page("d"), {**asked, "StatusEquals": "Stopping"})
        seconds = TrainingJobs(client).working("traindyno-", now=1_790_000_060)
    # The second page was answered at a time of its own, 1,790,000,600
    assert seconds == {"a": 60, "b": 60, "c": 600, "d": 60}


@pytest.mark.parametrize(
    "resources",
    [
        {"InstanceType": "ml.g5.xlarge", "InstanceCount": "two"},
        {"FieldOfTomorrow": [], "InstanceCount": 1},
    ],
)
def test_a_request_unknown_to_this_boto3_is_refused_and_not_tried_again(
    resources: dict[str, Any],
) -> None:
    # A stub would answer before botocore checks the request; nothing listens at this endpoint.
    client = boto3.client("sagemaker", endpoint_url="http://127.0.0.1:9", **KEYS)  # type: ignore[call-overload]
    with pytest.raises(JobRefused, match="Parameter validation failed") as caught:
        TrainingJobs(client).start({**REQUEST, "ResourceConfig": resources})
    assert caught.value.outcome is Outcome.INTERNAL_ERROR
