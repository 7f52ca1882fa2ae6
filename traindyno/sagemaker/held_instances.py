"""The instances that a job holds: while it runs, and warm after its end."""

from collections.abc import Iterator, Mapping
from typing import Any

from traindyno.core.planning.quotas import HeldInstances


def read_held_instances(job: Mapping[str, Any]) -> Iterator[HeldInstances]:
    """A job whose instance type is not selected yet holds none, and neither does a job that has ended, nor one
    that SageMaker places itself (a serverless job has no ResourceConfig).
    """
    resources = job.get("ResourceConfig", {})
    is_working = job["TrainingJobStatus"] in {"InProgress", "Stopping"}
    is_kept_warm = job.get("WarmPoolStatus", {}).get("Status") == "Available"
    if not is_working and not is_kept_warm:
        return
    groups = resources.get("InstanceGroups") or [
        {
            "InstanceType": resources.get("SelectedInstanceType") or resources.get("InstanceType"),
            "InstanceCount": resources.get("SelectedInstanceCount") or resources.get("InstanceCount", 0),
        }
    ]
    for group in groups:
        if group["InstanceType"]:
            yield HeldInstances(
                instance_type=group["InstanceType"],
                instance_count=group["InstanceCount"],
                is_spot=bool(job.get("EnableManagedSpotTraining")),
            )


def read_job_names(page: Mapping[str, Any]) -> Iterator[str]:
    """The names of the jobs on one page of ListTrainingJobs."""
    return (job["TrainingJobName"] for job in page["TrainingJobSummaries"])
