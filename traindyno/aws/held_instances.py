"""Which instances the account's training jobs hold now: one pass over them, below SageMaker's request limits."""

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from traindyno.core.planning.usage import HeldInstances
from traindyno.sagemaker.held_instances import read_held_instances, read_job_names

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


def list_held_instances(
    sagemaker: "SageMakerClient", *, sleep: Callable[[float], None]
) -> tuple[HeldInstances, ...] | None:
    """Of all owners. None where more jobs run than can be described in reasonable time: then it stays unknown."""
    names = dict.fromkeys(_names(sagemaker, sleep))
    if len(names) > MOST_DESCRIPTIONS:
        return None
    held: list[HeldInstances] = []
    for name in names:
        held += read_held_instances(dict(sagemaker.describe_training_job(TrainingJobName=name)))
        sleep(BETWEEN_DESCRIPTIONS_SECONDS)
    return tuple(held)


def _names(sagemaker: "SageMakerClient", sleep: Callable[[float], None]) -> Iterator[str]:
    pages = sagemaker.get_paginator("list_training_jobs")
    asked: Any
    for asked in HOLDING:
        for page in pages.paginate(**asked, PaginationConfig={"PageSize": 100}):
            yield from read_job_names(page)
            sleep(BETWEEN_LISTINGS_SECONDS)
