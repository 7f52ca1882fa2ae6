"""The job's document: which runs the parent starts, in which order, and how much time they have."""

import json
from pathlib import Path
from typing import Any, Dict, Mapping, NamedTuple, Optional, Sequence, Tuple

from traindyno.core.jobs.journal_format import (
    DOCUMENT_CHANNEL,
    DOCUMENT_VARIABLE,
    FORMAT_VERSION,
    TORCHRUN,
)

LOCAL_GPU = "local.gpu"


class DocumentRefused(Exception):
    """The job's document is absent, or not one that this parent knows."""


class BatchOrder(NamedTuple):
    """How a run's batch is searched.

    ``path``: of the batch in its hyperparameters. ``first``: what is probed first; each batch is a
    multiple of ``step``. ``choice``: ``largest`` or ``best``. ``possible``: the only batches, in
    order; None: all of them.
    """

    choice: str
    first: int
    step: int
    path: Sequence[str]
    possible: Optional[Sequence[int]] = None


class RunOrder(NamedTuple):
    """What the job document says about one run.

    ``channels`` has for each channel of the run the job's channel that has its files. ``batch`` is
    None unless it is searched.
    """

    run_id: str
    launcher: str
    processes_per_host: int
    arguments: Sequence[str]
    hyperparameters: Dict[str, Any]
    environment: Dict[str, str]
    channels: Dict[str, str]
    batch: Optional[BatchOrder] = None


class JobOrder(NamedTuple):
    """What the job document says about the job.

    Attributes:
        grace_seconds: Time from SIGTERM to SIGKILL.
        lease_seconds: A host that is silent for so long is lost. A host is silent while a full disk
            cache is written, or a large cache of the run removed.
        device_seconds: Longest time for which a run waits for the memory of the devices.
        inherited: Variables of the job that are the runs' own too.
        race_samples: A run that would need much longer for so many samples than an earlier one is
            ended. None: every run goes on to its end.
        again: Further runs of the contenders, by the ids of the first runs of their cells.
        warm_up_steps: Steps of a throw-away run before the first run.
        cut_off: Earlier jobs that the service or the lab ended. They did not die of their run in
            progress.
    """

    job_id: str
    program: str
    instance_type: str
    max_job_seconds: float
    max_run_seconds: Optional[float]
    ending_seconds: float
    runs: Sequence[RunOrder]
    grace_seconds: float = 30.0
    lease_seconds: float = 300.0
    device_seconds: float = 60.0
    inherited: Sequence[str] = ()
    race_samples: Optional[float] = None
    warm_up_steps: int = 0
    cut_off: Sequence[str] = ()
    again: Sequence[Tuple[str, RunOrder]] = ()


def find_document(environment: Mapping[str, str]) -> Path:
    """A path, or the name of a file in the channel of documents."""
    named = environment.get(DOCUMENT_VARIABLE)
    if not named:
        raise DocumentRefused(
            "the environment has no {}; expected the job's document".format(DOCUMENT_VARIABLE)
        )
    channel = environment.get("SM_CHANNEL_{}".format(DOCUMENT_CHANNEL.upper()), "")
    return Path(channel) / named


def read_document(path: Path) -> JobOrder:
    """The lab that brings this parent writes it (``traindyno/sagemaker/job_document.py``): its
    values are not checked. Raises DocumentRefused.
    """
    try:
        return _job(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise DocumentRefused(
            "the job's document {} is not as expected: {!r}".format(path, error)
        ) from error


def with_own_devices(job: JobOrder, environment: Mapping[str, str]) -> JobOrder:
    """Each GPU of this machine gets a process, as in a job of one run: the lab does not know how
    many there are.
    """
    count = environment.get("SM_NUM_GPUS", "")
    if job.instance_type != LOCAL_GPU or not count.isdigit() or int(count) < 1:
        return job

    def with_all(run: RunOrder) -> RunOrder:
        return run._replace(processes_per_host=int(count)) if run.launcher == TORCHRUN else run

    again = tuple((first, with_all(run)) for first, run in job.again)
    return job._replace(runs=tuple(map(with_all, job.runs)), again=again)


def _job(document: Dict[str, Any]) -> JobOrder:
    if document["version"] != FORMAT_VERSION:
        raise ValueError(
            "got version {!r}, expected {}".format(document["version"], FORMAT_VERSION)
        )
    given = {name: document[name] for name in JobOrder._fields if name in document}
    given["runs"] = tuple(map(_run, document["runs"]))
    given["again"] = tuple((run["first"], _run(run)) for run in document.get("again", ()))
    given["race_samples"] = document["race"]["samples"] if "race" in document else None
    return JobOrder(**given)


def _run(document: Dict[str, Any]) -> RunOrder:
    given = {name: document[name] for name in RunOrder._fields if name in document}
    batch = document.get("batch")
    return RunOrder(**{**given, "batch": batch and BatchOrder(**batch)})
