"""The CreateTrainingJob request of a job that several runs share: the SDK's, for a script that no launcher distributes.

Its program is the parent process, which starts the runs of the job's document.
"""

from typing import Any

from traindyno.core.jobs.job import Job
from traindyno.core.jobs.journal_format import (
    CONTAINER_FOLDER,
    DOCUMENT_CHANNEL,
    DOCUMENT_VARIABLE,
    FOLDER_VARIABLE,
    PROGRAM,
)
from traindyno.core.s3_keys import job_document_key, s3_uri
from traindyno.core.suite.choices import InputMode
from traindyno.core.suite.job_time import upload_environment
from traindyno.core.suite.suite import Suite
from traindyno.sagemaker.channels import CONTAINER_CHANNELS, channel
from traindyno.sagemaker.images import select_image_uri
from traindyno.sagemaker.job_names import shared_job_name
from traindyno.sagemaker.job_settings import JobSettings
from traindyno.sagemaker.launcher import toolkit_hyperparameters
from traindyno.sagemaker.request import job_request
from traindyno.sagemaker.shared_channels import shared_channels
from traindyno.sagemaker.shared_runs import placed_runs


def build_shared_job_request(
    job: Job, suite: Suite, *, attempt: int, settings: JobSettings, placed_on: str | None = None
) -> dict[str, Any]:
    """``placed_on``: the instance type on which an earlier attempt of the job ran."""
    runs = placed_runs(job, suite, placed_on)
    first, staged = runs[0]
    job_name = shared_job_name(job, suite.name, attempt=attempt, lab=settings.lab)
    document = s3_uri(settings.results_bucket, job_document_key(job.execution_id, job.job_id))
    return job_request(
        first,
        staged,
        owner_id=job.job_id,
        job_name=job_name,
        image_uri=select_image_uri(first.cell.settings, staged.workload, settings),
        hyperparameters=toolkit_hyperparameters({}, staged, job_name=job_name, settings=settings, program=PROGRAM),
        channels=[*shared_channels(runs).entries, channel(DOCUMENT_CHANNEL, document, InputMode.FILE)],
        environment=_environment(job, staged),
        settings=settings,
        is_placed=bool(placed_on),
    )


def _environment(job: Job, suite: Suite) -> dict[str, str]:
    """The workload's own variables are the parent's too: the toolkit installs the source's packages with them."""
    own = {
        DOCUMENT_VARIABLE: f"{CONTAINER_CHANNELS}/{DOCUMENT_CHANNEL}/{job.job_id}.json",
        FOLDER_VARIABLE: CONTAINER_FOLDER,
    }
    return {**own, **upload_environment(suite.limits.max_upload_seconds), **suite.workload.environment}
