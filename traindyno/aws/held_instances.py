"""Which instances the account's training jobs hold at the moment: one sweep over them, at SageMaker's own pace."""

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from traindyno.core.planning.usage import HeldInstances

if TYPE_CHECKING:
    from mypy_boto3_sagemaker import SageMakerClient

# SageMaker allows two listings and five descriptions a second; the lab's other functions need some of them.
BETWEEN_LISTINGS_SECONDS = 0.7
BETWEEN_DESCRIPTIONS_SECONDS = 0.3
MOST_DESCRIPTIONS = 300
HOLDING: tuple[Mapping[str, str], ...] = (
    {"StatusEquals": "InProgress"},
    {"StatusEquals": "Stopping"},
    {"WarmPoolStatusEquals": "Available"},
)


def read_held_instances(
    sagemaker: "SageMakerClient", *, sleep: Callable[[float], None]
) -> tuple[HeldInstances, ...] | None:
    """Of all owners. None where more jobs run than can be described in reasonable time: then it stays unknown."""
    names = dict.fromkeys(_names(sagemaker, sleep))
    if len(names) > MOST_DESCRIPTIONS:
        return None
    held: list[HeldInstances] = []
    for name in names:
        held += _held_by(dict(sagemaker.describe_training_job(TrainingJobName=name)))
        sleep(BETWEEN_DESCRIPTIONS_SECONDS)
    return tuple(held)


def _names(sagemaker: "SageMakerClient", sleep: Callable[[float], None]) -> Iterator[str]:
    pages = sagemaker.get_paginator("list_training_jobs")
    asked: Any
    for asked in HOLDING:
        for page in pages.paginate(**asked, PaginationConfig={"PageSize": 100}):
            yield from (job["TrainingJobName"] for job in page["TrainingJobSummaries"])
            sleep(BETWEEN_LISTINGS_SECONDS)


def _held_by(job: Mapping[str, Any]) -> Iterator[HeldInstances]:
    """A job that has not got its choice of instance types yet holds none."""
    resources = job["ResourceConfig"]
    is_working = job["TrainingJobStatus"] in {"InProgress", "Stopping"}
    is_kept_warm = job.get("WarmPoolStatus", {}).get("Status") == "Available"
    if not is_working and not is_kept_warm:
        return  # it ended between the listing and now
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
