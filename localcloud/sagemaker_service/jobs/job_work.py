"""The work of a training job, read from its hyperparameters: steps, processes and batch."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import ceil, inf
from typing import Any

from localcloud.sagemaker_service.jobs.job import TrainingJob
from traindyno.core.errors import SuiteInvalid
from traindyno.core.jobs.journal_format import DOCUMENT_VARIABLE
from traindyno.core.run.processes import global_batch_size, world_size
from traindyno.core.run.settings import Settings
from traindyno.core.suite.suite_file import parse_part

NOMINAL_SEQUENCE_LENGTH = 512
DEFAULT_STEPS = 100
DEFAULT_SAMPLES = 8


def is_shared(job: TrainingJob) -> bool:
    return DOCUMENT_VARIABLE in job.request.get("Environment", {})


def job_of_run(job: TrainingJob, run: Mapping[str, Any]) -> TrainingJob:
    """The job that a run of a shared job would have alone, by its part of the job's document."""
    hyperparameters = {name: json.dumps(value) for name, value in run["hyperparameters"].items()}
    return replace(
        job,
        name=f"{job.name}/{run['run_id']}",
        request={**job.request, "HyperParameters": hyperparameters},
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class JobWork:
    """The work of a job; hyperparameters that it lacks have nominal values."""

    values: Mapping[str, Any]
    world_size: int
    processes_per_host: int
    steps: int
    global_batch_size: int
    sequence_length: int
    checkpoint_every_steps: int | None
    evaluate_every_steps: int | None
    #: How long it trains beyond ``steps``, to the end of its examples at most.
    least_seconds: float | None
    all_steps: float

    def samples_of(self, rank: int) -> int:
        """The samples of this process in a step, as the training strategies count them: they add up
        to the batch.
        """
        return (
            self.global_batch_size * (rank + 1) // self.world_size
            - self.global_batch_size * rank // self.world_size
        )

    def steps_in_checkpoint(self, steps: int) -> int:
        """How many of ``steps`` are in the last periodic checkpoint: an interrupted job resumes
        after them.

        The checkpoint that a job writes on SIGTERM is not simulated, because the time for it
        depends on the size of the model.
        """
        return steps - steps % self.checkpoint_every_steps if self.checkpoint_every_steps else 0


def read_work(job: TrainingJob) -> JobWork:
    hyperparameters = job.hyperparameters
    settings = _mapping(hyperparameters.get("settings"))
    workload = _mapping(hyperparameters.get("workload"))
    planned = _settings_of(job, settings)
    processes = world_size(planned) or job.instance_count
    batch_size = max(global_batch_size(planned, processes), 1)
    measurement = _mapping(hyperparameters.get("measurement"))
    most_steps = _whole(measurement.get("max_steps")) or DEFAULT_STEPS
    examples = _whole(workload.get("examples"))
    all_steps = inf if examples is None else max(ceil(examples / batch_size), 1)
    return JobWork(
        values={
            **hyperparameters,
            **settings,
            "instance_type": job.instance_type,
            "instance_count": job.instance_count,
        },
        world_size=processes,
        processes_per_host=processes // job.instance_count,
        steps=int(min(most_steps, all_steps)),
        least_seconds=measurement.get("least_seconds"),
        all_steps=all_steps,
        global_batch_size=batch_size,
        sequence_length=_whole(workload.get("sequence_length")) or NOMINAL_SEQUENCE_LENGTH,
        checkpoint_every_steps=_whole(measurement.get("checkpoint_every_steps")),
        evaluate_every_steps=_whole(measurement.get("evaluate_every_steps")),
    )


def _settings_of(job: TrainingJob, hyperparameters: Mapping[str, Any]) -> Settings:
    """The job's settings, on its instances.

    Invalid ones are ignored: another program may define a hyperparameter of this name.
    """
    nominal = {"batch_size_per_device": DEFAULT_SAMPLES}
    placed = {"instance": job.instance_type, "instance_count": job.instance_count}
    try:
        return parse_part({**nominal, **hyperparameters, **placed}, Settings)
    except SuiteInvalid:
        return parse_part({**nominal, **placed}, Settings)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _whole(value: Any) -> int | None:
    """The integer, or None for a value that another program gives this name."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None
