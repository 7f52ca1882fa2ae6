"""Instances that an execution keeps warm for its next runs: release them, and settle the cost of keeping them."""

from collections.abc import Callable, Iterable
from typing import Protocol

from traindyno.aws.training_jobs import TrainingJobs
from traindyno.core.jobs.job_end import WarmPool
from traindyno.core.measurement.run_result import RunResult, with_kept_warm
from traindyno.lab.budget import time_usd
from traindyno.sagemaker.job_names import job_name_prefix
from traindyno.store.attempts import AttemptRows
from traindyno.store.executions import ExecutionRow, ExecutionRows
from traindyno.store.spending import Spending

# SageMaker ends a released pool within seconds.
LOOKS_AFTER_RELEASE = 10
SECONDS_BETWEEN_LOOKS = 2.0


class WarmPoolServices(Protocol):
    executions: ExecutionRows
    attempts: AttemptRows
    spending: Spending
    jobs: TrainingJobs


def release_warm_pools(
    execution_id: str, *, lab: str, services: WarmPoolServices, sleep: Callable[[float], None]
) -> tuple[WarmPool, ...]:
    """Release all pools and settle their cost. Otherwise each is billed until the end of its keep-alive time."""
    prefix = _prefix(services.executions.find(execution_id), lab=lab)
    if prefix is None:
        return ()
    released = [name for name in services.jobs.keeping_warm(prefix) if services.jobs.release_instances(name)]
    for _ in range(LOOKS_AFTER_RELEASE if released else 0):
        if not services.jobs.keeping_warm(prefix):
            break
        sleep(SECONDS_BETWEEN_LOOKS)
    pools = tuple(services.jobs.warm_pools(prefix))
    settle_pools(execution_id, pools, services=services)
    return pools


def read_warm_pools(execution: ExecutionRow | None, *, lab: str, jobs: TrainingJobs) -> tuple[WarmPool, ...]:
    """The warm pools of the execution's jobs; empty if it keeps no instances warm."""
    prefix = _prefix(execution, lab=lab)
    return () if prefix is None else tuple(jobs.warm_pools(prefix))


def settle_ended_pools(execution_id: str, *, lab: str, services: WarmPoolServices) -> int:
    """Settle pools whose time has ended, for which there is no event. Returns their number."""
    if not services.spending.read(execution_id).pools:
        return 0
    pools = read_warm_pools(services.executions.find(execution_id), lab=lab, jobs=services.jobs)
    return settle_pools(execution_id, pools, services=services)


def settle_pools(execution_id: str, pools: Iterable[WarmPool], *, services: WarmPoolServices) -> int:
    unsettled = services.spending.read(execution_id).pools
    return sum(settle_pool(pool, services=services) for pool in pools if pool.is_over and pool.job_name in unsettled)


def settle_pool(pool: WarmPool, *, services: WarmPoolServices) -> bool:
    """Safe to repeat. The cost belongs to the execution whose job kept the pool."""
    row = services.attempts.find(pool.job_name)
    if row is None or row.end is None:
        return False
    return services.spending.settle_pool(
        row.owner.execution_id,
        row.job_name,
        reserved_usd=time_usd(row, row.end.keep_warm_seconds),
        spent_usd=time_usd(row, pool.retained_seconds),
    )


def with_warm_pools(results: Iterable[RunResult], pools: Iterable[WarmPool]) -> list[RunResult]:
    """The results with the cost of ended warm pools."""
    seconds = {pool.job_name: pool.retained_seconds for pool in pools if pool.is_over}
    return [with_kept_warm(result, seconds) for result in results] if seconds else list(results)


def _prefix(execution: ExecutionRow | None, *, lab: str) -> str | None:
    """The prefix of the execution's job names; None if it keeps no instances warm."""
    if execution is None or not execution.warm_pool_seconds:
        return None
    return job_name_prefix(execution.execution_id, execution.suite_name, lab=lab)
