"""The runs of a shared job, each with the suite as its own job would have it."""

from traindyno.core.jobs.job import Job
from traindyno.core.suite.cells import run_on
from traindyno.core.suite.suite import Run, Suite
from traindyno.sagemaker.staged_model import with_staged_model


def placed_runs(job: Job, suite: Suite, placed_on: str | None) -> tuple[tuple[Run, Suite], ...]:
    """Each run, on the type on which an earlier attempt of the job ran, and the suite with the model that it reads."""
    staged = ((run, with_staged_model(suite, run)) for run in job.runs)
    return tuple((run_on(own, run, placed_on) if placed_on else run, own) for run, own in staged)
