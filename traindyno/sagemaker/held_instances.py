"""The instances that a job holds: while it runs, and warm after its end."""

from collections.abc import Iterator, Mapping
from typing import Any

from traindyno.core.errors import TraindynoError
from traindyno.core.jobs.job_end import WarmPool
from traindyno.core.planning.quotas import HeldInstances


class UnknownWarmPoolStatus(TraindynoError):
    """SageMaker returned a warm pool status that this version does not know."""


def read_warm_pool(job: Mapping[str, Any]) -> WarmPool | None:
    """Reads a job's description, or its entry in a list of jobs; None if it keeps no instances."""
    found = job.get("WarmPoolStatus")
    if found is None or found["Status"] == "InUse":
        return None
    return WarmPool(
        job_name=job["TrainingJobName"],
        is_over=_is_over(job["TrainingJobName"], found["Status"]),
        retained_seconds=float(found.get("ResourceRetainedBillableTimeInSeconds") or 0),
        reused_by=found.get("ReusedByJob"),
    )


def _is_over(job_name: str, status: str) -> bool:
    match status:
        case "Available":
            return False
        case "Reused" | "Terminated":
            return True
    raise UnknownWarmPoolStatus(f"job {job_name}: unknown WarmPoolStatus {status}")


def read_warm_pools(page: Mapping[str, Any]) -> Iterator[WarmPool]:
    """The warm pools of the jobs on one page of ListTrainingJobs."""
    return filter(None, map(read_warm_pool, page["TrainingJobSummaries"]))


def build_release_request(job_name: str) -> dict[str, Any]:
    """The UpdateTrainingJob request that releases a job's warm pool, so that its billing stops."""
    return {"TrainingJobName": job_name, "ResourceConfig": {"KeepAlivePeriodInSeconds": 0}}


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
                is_kept_warm=not is_working,
            )


def read_job_names(page: Mapping[str, Any]) -> Iterator[str]:
    """The names of the jobs on one page of ListTrainingJobs."""
    return (job["TrainingJobName"] for job in page["TrainingJobSummaries"])
