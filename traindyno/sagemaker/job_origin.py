"""The origin of a training job: the attempt that its name, its tags and its description name."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from traindyno.sagemaker.job_description import epoch_seconds
from traindyno.sagemaker.job_names import attempt_number
from traindyno.sagemaker.request import EXECUTION_TAG, OWNER_TAG


@dataclass(frozen=True, slots=True, kw_only=True)
class JobOrigin:
    """``owner_id`` is of the run, the shared job or the preparation, ``number`` of the attempt.

    ``instance_type`` is the one type of the job's request; None if the job may use several.
    """

    job_name: str
    execution_id: str
    owner_id: str
    number: int
    created_at: float
    instance_type: str | None


def read_origin(job: Mapping[str, Any], tags: Mapping[str, str]) -> JobOrigin | None:
    """None for a job that this lab did not start."""
    number = attempt_number(job["TrainingJobName"])
    if number is None or not {EXECUTION_TAG, OWNER_TAG} <= tags.keys():
        return None
    return JobOrigin(
        job_name=job["TrainingJobName"],
        execution_id=tags[EXECUTION_TAG],
        owner_id=tags[OWNER_TAG],
        number=number,
        created_at=epoch_seconds(job["CreationTime"]),
        instance_type=job["ResourceConfig"].get("InstanceType"),
    )


def build_tags_request(job: Mapping[str, Any]) -> dict[str, Any]:
    """The ListTags request of a described job."""
    return {"ResourceArn": job["TrainingJobArn"]}


def read_tags(answer: Mapping[str, Any]) -> dict[str, str]:
    return {tag["Key"]: tag["Value"] for tag in answer["Tags"]}


def read_names(page: Mapping[str, Any]) -> Iterator[str]:
    """The jobs of a page of ListTrainingJobs."""
    return (row["TrainingJobName"] for row in page["TrainingJobSummaries"])
