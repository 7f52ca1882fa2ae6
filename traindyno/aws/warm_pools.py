"""Let go of instances that an execution kept warm for its own next runs."""

from traindyno.aws.suite_rows import SuiteRows
from traindyno.aws.training_jobs import TrainingJobs
from traindyno.core.training_job import job_name_prefix


def release_warm_pools(execution_id: str, *, lab: str, suites: SuiteRows, jobs: TrainingJobs) -> int:
    """How many were released. Without this, each would be billed until its keep-alive time is over."""
    facts = suites.read(execution_id) or {}
    if not facts.get("warm_pool_seconds"):
        return 0
    prefix = job_name_prefix(execution_id, facts["name"], lab=lab)
    return sum(jobs.release_instances(name) for name in jobs.keeping_warm(prefix))
