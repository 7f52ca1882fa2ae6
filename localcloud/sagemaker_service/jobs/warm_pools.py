"""Warm pools: instances that a simulated job keeps for the next matching job.

The time between two jobs is measured by the machine's monotonic clock, because the start of the next job is not
simulated. A pool that no job uses ends in the jobs' virtual time. A start of the machine releases its pools.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from localcloud.sagemaker_service.jobs.job import TrainingJob
from localcloud.sagemaker_service.jobs.job_store import JobStore

AVAILABLE = "Available"
RESOURCES_ALIKE = ("InstanceType", "InstanceCount", "VolumeSizeInGB", "VolumeKmsKeyId")
REQUEST_ALIKE = ("RoleArn", "VpcConfig", "EnableInterContainerTrafficEncryption", "EnableNetworkIsolation")
# A pool is kept for at least this time by the machine's clock, for any speed of virtual time: the lab needs it to
# start the next job of the lane.
SHORTEST_SECONDS = 20.0


def keep_alive_seconds(job: TrainingJob) -> int:
    return int(job.request["ResourceConfig"].get("KeepAlivePeriodInSeconds", 0))


def is_available(job: TrainingJob) -> bool:
    return job.warm_pool is not None and job.warm_pool.get("Status") == AVAILABLE


def expires_at_ms(job: TrainingJob) -> int | None:
    """The end of the job's pool if no job uses it; None if it has no pool."""
    if not is_available(job) or job.training_end_ms is None:
        return None
    return job.training_end_ms + keep_alive_seconds(job) * 1000


def with_pool(job: TrainingJob, machine_seconds: float) -> TrainingJob:
    """The ended job with its instances kept, if it requested that and had instances."""
    if keep_alive_seconds(job) == 0 or job.training_end_ms is None:
        return job
    return replace(
        job,
        warm_pool=_pool(AVAILABLE, 0),
        pool_began_seconds=machine_seconds,
        pool_longest_seconds=keep_alive_seconds(job),
    )


def expired(job: TrainingJob, now_ms: int, machine_seconds: float) -> TrainingJob:
    expiry_ms = expires_at_ms(job)
    if expiry_ms is None or now_ms < expiry_ms or _reuse_seconds_left(job, machine_seconds) > 0:
        return job
    until_ms = max(expiry_ms, job.modified_ms)
    retained_seconds = max(round((until_ms - (job.training_end_ms or until_ms)) / 1000), 0)
    return replace(job, warm_pool=_pool("Terminated", min(retained_seconds, job.pool_longest_seconds)))


def seconds_to_next_check(job: TrainingJob, now_ms: int, machine_seconds: float) -> float | None:
    """Seconds of the machine's clock until a pool past its virtual end is checked again; None for every other pool."""
    expiry_ms = expires_at_ms(job)
    if expiry_ms is None or now_ms < expiry_ms:
        return None
    return _reuse_seconds_left(job, machine_seconds)


def take_pool(store: JobStore, job: TrainingJob, machine_seconds: float) -> bool:
    """Whether the job starts on the instances of an earlier job; at most one job takes a pool."""
    for left in store.select("warm_pool = ?", (AVAILABLE,), "modified_ms desc", -1):
        if _are_alike(left, job):
            taken = store.change(left.name, lambda earlier: _reused(earlier, job.name, machine_seconds))
            if taken.warm_pool and taken.warm_pool.get("ReusedByJob") == job.name:
                return True
    return False


def _reused(job: TrainingJob, by_name: str, machine_seconds: float) -> TrainingJob:
    if not is_available(job):
        return job
    between_seconds = _age_seconds(job, machine_seconds)
    if between_seconds >= keep_alive_seconds(job):
        return job
    return replace(job, warm_pool={**_pool("Reused", round(between_seconds)), "ReusedByJob": by_name})


def _reuse_seconds_left(job: TrainingJob, machine_seconds: float) -> float:
    """How long another job may still take the pool, at most the requested period; 0 or less if it was released."""
    return min(SHORTEST_SECONDS, keep_alive_seconds(job)) - _age_seconds(job, machine_seconds)


def _age_seconds(job: TrainingJob, machine_seconds: float) -> float:
    """Infinite for a pool of an earlier boot: the monotonic clock began again. Threads may read it in another order."""
    began = machine_seconds if job.pool_began_seconds is None else job.pool_began_seconds
    return max(machine_seconds - began, 0) if began < machine_seconds + SHORTEST_SECONDS else float("inf")


def _pool(status: str, retained_seconds: int) -> dict[str, Any]:
    return {"Status": status, "ResourceRetainedBillableTimeInSeconds": retained_seconds}


def _are_alike(left: TrainingJob, job: TrainingJob) -> bool:
    return _signature(left.request) == _signature(job.request) and not job.is_spot


def _signature(request: Mapping[str, Any]) -> list[Any]:
    resources = request["ResourceConfig"]
    return [resources.get(name) for name in RESOURCES_ALIKE] + [request.get(name) or None for name in REQUEST_ALIKE]
