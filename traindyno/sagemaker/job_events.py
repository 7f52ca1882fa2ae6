"""EventBridge's event about a training job: what a rule matches, and the job's name in an event."""

from collections.abc import Mapping
from typing import Any

from traindyno.core.lab_names import jobs_prefix

EVENT_SOURCE = "aws.sagemaker"
DETAIL_TYPE = "SageMaker Training Job State Change"
ENDED_STATUSES = ("Completed", "Failed", "Stopped")


def ended_jobs_of(lab: str) -> dict[str, Any]:
    """The ``detail`` pattern of a rule that matches the ends of one lab's jobs."""
    return {"TrainingJobName": [{"prefix": jobs_prefix(lab)}], "TrainingJobStatus": [*ENDED_STATUSES]}


def job_name_in(event: Mapping[str, Any]) -> str:
    name: str = event["detail"]["TrainingJobName"]
    return name
