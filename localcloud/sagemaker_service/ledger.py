"""What every job has really cost in billed seconds: the engine's own count, for others to be reconciled with."""

from typing import Any

from localcloud.sagemaker_service.job import TERMINAL, Job, billed_seconds
from localcloud.sagemaker_service.job_store import JobStore


def ledger_rows(store: JobStore) -> list[dict[str, Any]]:
    return [_row(job) for job in store.select("1 = 1", (), "created_ms, name", -1)]


def _row(job: Job) -> dict[str, Any]:
    """``billed_seconds`` is wall clock: an instance's bill, to be multiplied by ``instance_count``."""
    has_started = job.training_start_ms is not None
    return {
        "job_name": job.name,
        "engine": job.engine,
        "created_at": job.created_ms / 1000,
        "status": job.status,
        "has_ended": job.status in TERMINAL,
        "instance_type": job.instance_type,
        "instance_count": job.instance_count,
        "is_spot": job.is_spot,
        "billed_seconds": billed_seconds(job) if has_started else 0,
        "warm_pool_seconds": job.warm_pool["ResourceRetainedBillableTimeInSeconds"] if job.warm_pool else 0,
        "reused_by": job.warm_pool.get("ReusedByJob") if job.warm_pool else None,
        "started_warm": job.started_warm,
    }
