"""Instances that an execution keeps warm for its own next runs: let go of them, and see for how long they were kept."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from traindyno.aws.suite_rows import SuiteRows
from traindyno.aws.training_jobs import TrainingJobs
from traindyno.core.jobs.training_job import job_name_prefix

AVAILABLE = "Available"
BETWEEN_DESCRIPTIONS_SECONDS = 0.3


def release_warm_pools(execution_id: str, *, lab: str, suites: SuiteRows, jobs: TrainingJobs) -> int:
    """How many were released. Without this, each would be billed until its keep-alive time is over."""
    facts = suites.read(execution_id) or {}
    if not facts.get("warm_pool_seconds"):
        return 0
    prefix = job_name_prefix(execution_id, facts["name"], lab=lab)
    return sum(jobs.release_instances(name) for name in jobs.keeping_warm(prefix))


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmTimes:
    """``seconds``: job name → billed seconds for which its instances were kept. ``kept_by`` still have theirs."""

    seconds: Mapping[str, float]
    kept_by: tuple[str, ...]


def read_warm_times(job_names: Iterable[str], *, jobs: TrainingJobs, sleep: Callable[[float], None]) -> WarmTimes:
    """By describing each job, slowly: SageMaker allows five descriptions a second, and the lab needs some of them."""
    seconds: dict[str, float] = {}
    kept_by = []
    for job_name in job_names:
        pool = (jobs.describe(job_name) or {}).get("WarmPoolStatus", {})
        seconds[job_name] = float(pool.get("ResourceRetainedBillableTimeInSeconds") or 0)
        if pool.get("Status") == AVAILABLE:
            kept_by.append(job_name)
        sleep(BETWEEN_DESCRIPTIONS_SECONDS)
    return WarmTimes(seconds=seconds, kept_by=tuple(kept_by))
