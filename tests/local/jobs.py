"""Builds training job requests for the local service, and waits for the jobs."""

import time
from functools import cache
from typing import Any

import boto3
from botocore.config import Config

from tests.archives import tar_gz
from tests.local.aws_double import AwsDouble

ENDED = frozenset({"Completed", "Failed", "Stopped"})
BUCKET = "lab"
SOURCE_URI = f"s3://{BUCKET}/code/sourcedir.tar.gz"


def client(service: str, endpoint: str, config: Config | None = None) -> Any:
    """Threads may share a client, but may not make clients at the same time."""
    return _session().client(service, endpoint_url=endpoint, config=config)  # type: ignore[call-overload]


@cache
def _session() -> boto3.Session:
    """One session serves all clients: each session parses the services' models again."""
    return boto3.Session(
        aws_access_key_id="test", aws_secret_access_key="test", region_name="us-east-1"
    )


def stage_script(aws: AwsDouble, script: str) -> None:
    aws.objects[f"{BUCKET}/code/sourcedir.tar.gz"] = tar_gz({"train.py": script})


def job_request(name: str, **changes: Any) -> dict[str, Any]:
    request: dict[str, Any] = {
        "TrainingJobName": name,
        "RoleArn": "arn:aws:iam::000000000000:role/training",
        "AlgorithmSpecification": {"TrainingImage": "pytorch", "TrainingInputMode": "File"},
        "OutputDataConfig": {"S3OutputPath": f"s3://{BUCKET}/out/"},
        "ResourceConfig": {"InstanceType": "local.cpu", "InstanceCount": 1, "VolumeSizeInGB": 30},
        "StoppingCondition": {"MaxRuntimeInSeconds": 60},
        "HyperParameters": {
            "sagemaker_program": '"train.py"',
            "sagemaker_submit_directory": f'"{SOURCE_URI}"',
        },
    }
    for member, value in changes.items():
        is_addition = member == "HyperParameters"
        request[member] = {**request[member], **value} if is_addition else value
    return request


def wait_until(
    sagemaker: Any, name: str, statuses: frozenset[str] = ENDED, seconds: float = 60
) -> dict[str, Any]:
    """Waits until the status or secondary status is one of ``statuses``, and returns the described
    job.
    """
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        job: dict[str, Any] = sagemaker.describe_training_job(TrainingJobName=name)
        if statuses & {job["TrainingJobStatus"], job["SecondaryStatus"]}:
            return job
        time.sleep(0.05)
    raise AssertionError(
        f"{name} is {job['TrainingJobStatus']}/{job['SecondaryStatus']} after {seconds} s"
    )


def eventually(is_true: Any, seconds: float = 60, every_seconds: float = 0.05) -> None:
    deadline = time.monotonic() + seconds
    while not is_true():
        assert time.monotonic() < deadline, f"not so within {seconds} s"
        time.sleep(every_seconds)
