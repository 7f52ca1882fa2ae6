"""Instances that an execution keeps warm for its own next runs: let go of them, and settle what keeping them cost."""

from collections.abc import Callable, Iterable
from decimal import Decimal

from traindyno.aws.training_jobs import TrainingJobs
from traindyno.core.costs.prices import cost_usd
from traindyno.core.jobs.attempt import Attempt
from traindyno.core.jobs.warm_pool import WarmPool
from traindyno.core.measurement.run_result import RunResult, with_kept_warm
from traindyno.lab.services import LabServices
from traindyno.sagemaker.request import job_name_prefix
from traindyno.store.attempt_rows import AttemptRow
from traindyno.store.suite_rows import SuiteRows

# SageMaker ends a pool that is let go of within moments.
LOOKS_AFTER_RELEASE = 10
SECONDS_BETWEEN_LOOKS = 2.0


def release_warm_pools(
    execution_id: str, *, lab: str, services: LabServices, sleep: Callable[[float], None]
) -> tuple[WarmPool, ...]:
    """Let go of all and settle what they cost. Without this, each would be billed until its keep-alive time is over."""
    prefix = _prefix(execution_id, lab=lab, suites=services.suites)
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


def read_warm_pools(execution_id: str, *, lab: str, suites: SuiteRows, jobs: TrainingJobs) -> tuple[WarmPool, ...]:
    prefix = _prefix(execution_id, lab=lab, suites=suites)
    return () if prefix is None else tuple(jobs.warm_pools(prefix))


def settle_ended_pools(execution_id: str, *, lab: str, services: LabServices) -> int:
    """Of those whose time ran out, which nothing tells of. How many were settled."""
    if not services.spending.unsettled_pools(execution_id):
        return 0
    pools = read_warm_pools(execution_id, lab=lab, suites=services.suites, jobs=services.jobs)
    return settle_pools(execution_id, pools, services=services)


def settle_pools(execution_id: str, pools: Iterable[WarmPool], *, services: LabServices) -> int:
    unsettled = services.spending.unsettled_pools(execution_id)
    return sum(settle_pool(pool, services=services) for pool in pools if pool.is_over and pool.job_name in unsettled)


def settle_pool(pool: WarmPool, *, services: LabServices) -> bool:
    """Safe to repeat. To the execution of the job that left the pool, whoever took it."""
    row = services.attempts.read(pool.job_name)
    if row is None or row.end is None:
        return False
    return services.spending.settle_pool(
        row.run.execution_id,
        row.job_name,
        reserved_usd=time_usd(row, row.end.keep_warm_seconds),
        spent_usd=placed_usd(row, row.end, pool.retained_seconds),
    )


def time_usd(row: AttemptRow, seconds: float) -> Decimal:
    """What so many seconds of the attempt's instances cost."""
    return cost_usd(Decimal(str(seconds)), row.run.cell.settings.instance_count, row.usd_per_hour)


def billed_usd(row: AttemptRow, end: Attempt) -> Decimal:
    """What the attempt's job has cost, on the instance type that it ran on."""
    return placed_usd(row, end, end.billable_seconds or 0)


def placed_usd(row: AttemptRow, end: Attempt, seconds: float) -> Decimal:
    """At the price of the instance type that the job ran on."""
    usd_per_hour = row.usd_by_type.get(end.instance_type or "", row.usd_per_hour)
    return cost_usd(Decimal(str(seconds)), row.run.cell.settings.instance_count, usd_per_hour)


def with_warm_pools(results: Iterable[RunResult], pools: Iterable[WarmPool]) -> list[RunResult]:
    """The results with what keeping instances warm after their jobs cost, as far as it is over."""
    seconds = {pool.job_name: pool.retained_seconds for pool in pools if pool.is_over}
    return [with_kept_warm(result, seconds) for result in results] if seconds else list(results)


def _prefix(execution_id: str, *, lab: str, suites: SuiteRows) -> str | None:
    """What the names of the execution's jobs begin with; None if it keeps nothing warm."""
    facts = suites.read(execution_id) or {}
    return job_name_prefix(execution_id, facts["name"], lab=lab) if facts.get("warm_pool_seconds") else None
