"""The operations on training jobs answer boto3 as AWS does."""

import http.client
import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.local.aws_double import AwsDouble
from tests.local.jobs import client, job_request, stage_script, wait_until
from tests.local.running_service import SIGNED, RunningService

TYPES: list[dict[str, Any]] = [{"InstanceType": "ml.g5.xlarge"}, {"InstanceType": "ml.g6.xlarge"}]
GROUPS = [
    {**resource, "InstanceCount": 1, "InstanceGroupName": f"g{number}"}
    for number, resource in enumerate(TYPES)
]
LIMITS = {"MaxRuntimeInSeconds": 60, "MaxWaitTimeInSeconds": 30}


@pytest.fixture(scope="module")
def sagemaker(service: RunningService, aws: AwsDouble) -> Iterator[Any]:
    stage_script(aws, "print('done')")
    yield client("sagemaker", service.endpoint)


def refusal(call: Any, **request: Any) -> tuple[str, str]:
    with pytest.raises(ClientError) as caught:
        call(**request)
    error = caught.value.response["Error"]
    return error["Code"], error["Message"]


def raw_answer(
    service: RunningService, target: str, request: dict[str, Any], **headers: str
) -> tuple[int, Any]:
    """Sends a request without boto3, which would check it first."""
    connection = http.client.HTTPConnection(service.endpoint.removeprefix("http://"))
    sent = {
        "Content-Type": "application/x-amz-json-1.1",
        "X-Amz-Target": target,
        **SIGNED,
        **headers,
    }
    connection.request("POST", "/", json.dumps(request), sent)
    response = connection.getresponse()
    answer = response.status, json.loads(response.read())
    connection.close()
    return answer


def test_a_job_is_described_as_it_was_asked_for(sagemaker: Any) -> None:
    request = job_request(
        "described", Environment={"A": "b"}, Tags=[{"Key": "suite", "Value": "s"}]
    )
    arn = sagemaker.create_training_job(**request)["TrainingJobArn"]
    assert arn == "arn:aws:sagemaker:us-east-1:000000000000:training-job/described"
    job = wait_until(sagemaker, "described")
    for member in (
        "HyperParameters",
        "ResourceConfig",
        "OutputDataConfig",
        "RoleArn",
        "Environment",
    ):
        assert job[member] == request[member]
    assert "Tags" not in job
    assert sagemaker.list_tags(ResourceArn=arn)["Tags"] == [{"Key": "suite", "Value": "s"}]


def test_a_name_is_taken_once(sagemaker: Any) -> None:
    sagemaker.create_training_job(**job_request("taken"))
    code, message = refusal(sagemaker.create_training_job, **job_request("taken"))
    assert code == "ResourceInUse"
    assert "training-job/taken" in message


def test_every_problem_of_a_request_is_listed_at_once(service: RunningService) -> None:
    request = {
        "TrainingJobName": "no_underscores",
        "OutputDataConfig": {"S3OutputPath": "http://x"},
    }
    status, answer = raw_answer(service, "SageMaker.CreateTrainingJob", request)
    assert (status, answer["__type"]) == (400, "ValidationException")
    assert answer["message"].startswith("3 validation errors detected: ")
    assert (
        "Value null at 'roleArn' failed to satisfy constraint: Member must not be null"
        in answer["message"]
    )
    assert "at 'trainingJobName'" in answer["message"]
    assert "at 'outputDataConfig.s3OutputPath'" in answer["message"]


def test_a_malformed_request_and_pages_of_other_hosts_are_turned_away(
    service: RunningService,
) -> None:
    for status, headers in (
        (403, {"Host": "evil.example"}),
        (403, {"Origin": "http://evil.example"}),
        (403, {"Sec-Fetch-Site": "cross-site"}),
        (415, {"Content-Type": "text/plain"}),
        (400, {"Content-Length": "-1"}),
    ):
        assert raw_answer(service, "SageMaker.ListTrainingJobs", {}, **headers)[0] == status
    status, answer = raw_answer(service, "SageMaker.DescribeTrainingJob", {"TrainingJobName": 3})
    assert (status, answer["__type"]) == (400, "SerializationException")


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "application/x-amz-json-1.1"]
)
def test_faults_are_taken_as_json_only(service: RunningService, kind: str) -> None:
    headers = {"Content-Type": kind, **SIGNED}
    request = urllib.request.Request(f"{service.endpoint}/_local/faults", b'{"seed": 3}', headers)
    with pytest.raises(urllib.error.HTTPError, match="415"):
        urllib.request.urlopen(request)


def test_an_unknown_job_is_answered_as_aws_does(sagemaker: Any) -> None:
    expected = ("ValidationException", "Requested resource not found.")
    assert refusal(sagemaker.describe_training_job, TrainingJobName="absent") == expected
    assert refusal(sagemaker.stop_training_job, TrainingJobName="absent") == expected


def test_an_ended_job_can_not_be_stopped(sagemaker: Any) -> None:
    sagemaker.create_training_job(**job_request("over"))
    wait_until(sagemaker, "over")
    code, message = refusal(sagemaker.stop_training_job, TrainingJobName="over")
    assert (code, "is in status Completed" in message) == ("ValidationException", True)


def test_jobs_are_listed_by_filter_in_order_and_in_pages(sagemaker: Any) -> None:
    for number in range(5):
        sagemaker.create_training_job(**job_request(f"listed-{number}"))
    pages = sagemaker.get_paginator("list_training_jobs").paginate(
        NameContains="listed",
        SortBy="CreationTime",
        SortOrder="Ascending",
        PaginationConfig={"PageSize": 2},
    )
    names = [[job["TrainingJobName"] for job in page["TrainingJobSummaries"]] for page in pages]
    assert names == [["listed-0", "listed-1"], ["listed-2", "listed-3"], ["listed-4"]]
    newest_first = sagemaker.list_training_jobs(NameContains="listed", MaxResults=1)[
        "TrainingJobSummaries"
    ]
    assert newest_first[0]["TrainingJobName"] == "listed-4"
    for number in range(5):
        wait_until(sagemaker, f"listed-{number}")
    assert not sagemaker.list_training_jobs(NameContains="listed", StatusEquals="Failed")[
        "TrainingJobSummaries"
    ]


def on(instance_type: str, count: int = 1, **more: Any) -> dict[str, Any]:
    return {
        "ResourceConfig": {
            "InstanceType": instance_type,
            "InstanceCount": count,
            "VolumeSizeInGB": 1,
            **more,
        }
    }


REFUSED: list[tuple[dict[str, Any], str]] = [
    (
        on("ml.p9.huge"),
        "'ml.p9.huge' at 'resourceConfig.instanceType' failed to satisfy constraint",
    ),
    (
        {"ResourceConfig": {"VolumeSizeInGB": 1, "InstanceCount": 1, "InstanceGroups": GROUPS}},
        "InstanceGroups: this local",
    ),
    (
        {"ResourceConfig": {"VolumeSizeInGB": 1, "InstanceCount": 1, "InstancePreferences": TYPES}},
        "instances of one type only",
    ),
    ({"EnableManagedSpotTraining": True, "StoppingCondition": LIMITS}, "MaxWaitTimeInSeconds"),
]


def test_requests_beyond_aws_or_this_machine_are_refused(sagemaker: Any) -> None:
    for changes, says in REFUSED:
        code, message = refusal(sagemaker.create_training_job, **job_request("refused", **changes))
        assert code == "ValidationException"
        assert says in message
    code, message = refusal(
        sagemaker.create_training_job, **job_request("many", **on("local.cpu", 17))
    )
    assert code == "ResourceLimitExceeded"
    assert (
        "The account-level service limit 'local.cpu for training job usage' is 16 Instances"
        in message
    )
    assert "a request delta of 17 Instances" in message
