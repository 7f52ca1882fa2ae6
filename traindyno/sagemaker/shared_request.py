"""The CreateTrainingJob request of a job that several runs share: the SDK's, for a script that no
launcher distributes.

Its program is the parent process, which starts the runs of the job's document.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count
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
from traindyno.core.suite.checks.job_limits_check import SHARED_CHANNELS
from traindyno.core.suite.choices import InputMode
from traindyno.core.suite.suite import Run, Suite
from traindyno.sagemaker.channels import CONTAINER_CHANNELS, channel, run_channels
from traindyno.sagemaker.images import select_image_uri
from traindyno.sagemaker.job_names import attempt_job_name
from traindyno.sagemaker.job_settings import JobSettings
from traindyno.sagemaker.launcher import CODE_CHANNEL, toolkit_hyperparameters
from traindyno.sagemaker.request import job_request, with_staged_model


def staged_runs(job: Job, suite: Suite) -> tuple[tuple[Run, Suite], ...]:
    """Each run with the suite that has the model that it reads."""
    return tuple((run, with_staged_model(suite, run)) for run in job.runs)


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedChannels:
    """Channels of a shared job.

    ``entries`` is the job's InputDataConfig. ``names`` has for each run id and channel of the run
    the job's channel that has its data.
    """

    entries: tuple[Mapping[str, Any], ...]
    names: Mapping[str, Mapping[str, str]]


def shared_channels(runs: Sequence[tuple[Run, Suite]]) -> SharedChannels:
    """Channels of a job with these runs.

    The suites are as the runs' own jobs would have them. A channel keeps its name if no other run
    needs other data under it.
    """
    wanted = {run.run_id: run_channels(run, suite.workload) for run, suite in runs}
    taken = {DOCUMENT_CHANNEL, CODE_CHANNEL}
    reserved = taken | {needed["ChannelName"] for entries in wanted.values() for needed in entries}
    made: list[dict[str, Any]] = []
    names: dict[str, dict[str, str]] = {}
    job_names: dict[str, str] = {}
    for run_id, entries in wanted.items():
        names[run_id] = {}
        for needed in entries:
            name = needed["ChannelName"]
            content = repr(sorted(needed.items()))
            if content not in job_names:
                free = (
                    free_name
                    for number in count(2)
                    if (free_name := f"{name}-{number}") not in reserved
                )
                job_names[content] = name if name not in taken else next(free)
                taken.add(job_names[content])
                reserved.add(job_names[content])
                made.append({**needed, "ChannelName": job_names[content]})
            names[run_id][name] = job_names[content]
    assert len(made) <= SHARED_CHANNELS, (
        f"{', '.join(wanted)}: the planner shares no job with {len(made)} channels"
    )
    return SharedChannels(entries=tuple(made), names=names)


def build_shared_job_request(
    job: Job, suite: Suite, *, attempt: int, settings: JobSettings
) -> dict[str, Any]:
    runs = staged_runs(job, suite)
    first, staged = runs[0]
    job_name = attempt_job_name(job, suite.name, attempt=attempt, lab=settings.lab)
    document = s3_uri(settings.results_bucket, job_document_key(job.execution_id, job.job_id))
    return job_request(
        first,
        staged,
        owner_id=job.job_id,
        job_name=job_name,
        image_uri=select_image_uri(first.cell.settings, staged.workload, settings),
        hyperparameters=toolkit_hyperparameters(
            {}, staged, job_name=job_name, settings=settings, program=PROGRAM
        ),
        channels=[
            *shared_channels(runs).entries,
            channel(DOCUMENT_CHANNEL, document, InputMode.FILE),
        ],
        environment={
            DOCUMENT_VARIABLE: f"{CONTAINER_CHANNELS}/{DOCUMENT_CHANNEL}/{job.job_id}.json",
            FOLDER_VARIABLE: CONTAINER_FOLDER,
            **staged.workload.environment,  # the toolkit installs the source's packages with them
        },
        settings=settings,
    )
