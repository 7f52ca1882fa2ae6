"""Instances that stay after a simulated job for the next one like it."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from localcloud.sagemaker_service.job import Job
from localcloud.sagemaker_service.job_store import JobStore

AVAILABLE = "Available"
RESOURCES_ALIKE = ("InstanceType", "InstanceCount", "VolumeSizeInGB", "VolumeKmsKeyId")
REQUEST_ALIKE = ("RoleArn", "VpcConfig", "EnableInterContainerTrafficEncryption", "EnableNetworkIsolation")


def keep_alive_seconds(job: Job) -> int:
    return int(job.request["ResourceConfig"].get("KeepAlivePeriodInSeconds", 0))


def expires_at_ms(job: Job) -> int | None:
    """When the job's pool ends if nothing takes it; None if it has none to end."""
    if not job.warm_pool or job.warm_pool["Status"] != AVAILABLE or job.training_end_ms is None:
        return None
    return job.training_end_ms + keep_alive_seconds(job) * 1000


def with_pool(job: Job) -> Job:
    """The ended job with its instances kept, if it asked for that and ever held any."""
    if keep_alive_seconds(job) == 0 or job.training_end_ms is None:
        return job
    return replace(job, warm_pool=_pool(AVAILABLE, 0))


def expired(job: Job, now_ms: int) -> Job:
    expiry_ms = expires_at_ms(job)
    if expiry_ms is None or now_ms < expiry_ms:
        return job
    return replace(job, warm_pool=_pool("Terminated", _retained_seconds(job, max(expiry_ms, job.modified_ms))))


def take_pool(store: JobStore, job: Job, now_ms: int) -> bool:
    """Whether the job starts on instances that another one left; at most one job takes a pool."""
    for left in store.select("warm_pool = ?", (AVAILABLE,), "modified_ms desc", -1):
        if _are_alike(left, job):
            taken = store.change(left.name, lambda earlier: _reused(earlier, job.name, now_ms))
            if taken.warm_pool and taken.warm_pool.get("ReusedByJob") == job.name:
                return True
    return False


def _reused(job: Job, by_name: str, now_ms: int) -> Job:
    expiry_ms = expires_at_ms(job)
    if expiry_ms is None or now_ms >= expiry_ms:
        return job
    return replace(job, warm_pool={**_pool("Reused", _retained_seconds(job, now_ms)), "ReusedByJob": by_name})


def _retained_seconds(job: Job, until_ms: int) -> int:
    return max(round((until_ms - (job.training_end_ms or until_ms)) / 1000), 0)


def _pool(status: str, retained_seconds: int) -> dict[str, Any]:
    return {"Status": status, "ResourceRetainedBillableTimeInSeconds": retained_seconds}


def _are_alike(left: Job, job: Job) -> bool:
    return _signature(left.request) == _signature(job.request) and not job.is_spot


def _signature(request: Mapping[str, Any]) -> list[Any]:
    resources = request["ResourceConfig"]
    return [resources.get(name) for name in RESOURCES_ALIKE] + [request.get(name) or None for name in REQUEST_ALIKE]
