"""The document of a shared job: what its parent process needs to start each run as the training
toolkit would.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from traindyno.core.jobs.job import Job
from traindyno.core.jobs.journal_format import (
    CONTAINER_FOLDER,
    FORMAT_VERSION,
    PROCESS,
    STATE,
    STEP_LOG,
    TORCHRUN,
)
from traindyno.core.planning.jobs import runs_again
from traindyno.core.run.processes import dividing_batches, world_size
from traindyno.core.run.settings import has_effect
from traindyno.core.suite.arguments import command_arguments
from traindyno.core.suite.job_time import STOP_SECONDS
from traindyno.core.suite.runs import round_of, trained_settings
from traindyno.core.suite.suite import Run, Suite
from traindyno.figures.in_job.outpaced import LEAST_STEPS, WARM_UP_STEPS
from traindyno.sagemaker.images import known_type, select_image_uri
from traindyno.sagemaker.job_settings import JobSettings
from traindyno.sagemaker.launcher import (
    Launcher,
    own_hyperparameters,
    select_launcher,
    workload_program,
)
from traindyno.sagemaker.request import run_environment, with_staged_model
from traindyno.sagemaker.shared_request import shared_channels, staged_runs

LAUNCHERS = {Launcher.PROCESS: PROCESS, Launcher.TORCHRUN: TORCHRUN}
# A job that reaches its limit has STOP_SECONDS more, and its upload does not count. What is kept is
# for a run that ends slowly, and for what the parent can't see of the time before it.
PART_OF_LIMIT_KEPT = 10
# The toolkit sets them for a plain script, as the parent is one, over what the request says.
SET_BY_TOOLKIT = frozenset(
    {"MASTER_ADDR", "MASTER_PORT", "NCCL_DEBUG", "NCCL_IB_DISABLE", "NCCL_SOCKET_IFNAME"}
)


def job_document(
    job: Job, suite: Suite, settings: JobSettings, *, cut_off: Sequence[str] = ()
) -> dict[str, Any]:
    """Document that a shared job's parent process reads.

    Args:
        job: Job with its runs.
        suite: Suite of the job.
        settings: Settings of the lab.
        cut_off: Jobs of earlier attempts that the service or the lab ended.
    """
    runs = staged_runs(job, suite)
    first, staged = runs[0]
    instance_type = known_type(first.cell.settings.instance)
    limit_seconds = suite.limits.max_job_seconds
    names = shared_channels(runs).names
    return {
        "version": FORMAT_VERSION,
        "job_id": job.job_id,
        "execution_id": job.execution_id,
        "program": workload_program(staged),
        "instance_type": instance_type.name,
        "max_job_seconds": limit_seconds,
        "max_run_seconds": suite.limits.max_run_seconds,
        "ending_seconds": min(STOP_SECONDS, limit_seconds // PART_OF_LIMIT_KEPT),
        "inherited": sorted(_inherited(suite)),
        "cut_off": list(cut_off),
        **_race(job, suite),
        "runs": [
            {**_run_document(run, own, settings), "channels": dict(names[run.run_id])}
            for run, own in runs
        ],
        **_again(job, suite, settings, names),
    }


def _inherited(suite: Suite) -> set[str]:
    """The names of variables whose values are in the job's request only: every job of a lab can
    read the document.
    """
    return suite.workload.environment.keys() - SET_BY_TOOLKIT


def _race(job: Job, suite: Suite) -> dict[str, Any]:
    """The part of a race, if the job's runs are cells' first ones.

    Only these may be dropped: of many runs one is behind by chance. A quality may need fewer steps
    at a slower rate.
    """
    if not suite.search.is_race:
        return {}
    drops = suite.goal.target is None and all(round_of(run) == "1" for run in job.runs)
    race = {"race": {"samples": suite.workload.examples}} if drops else {}
    return {"warm_up_steps": WARM_UP_STEPS + LEAST_STEPS, **race}


def _again(
    job: Job, suite: Suite, settings: JobSettings, names: Mapping[str, Mapping[str, str]]
) -> dict[str, list[dict[str, Any]]]:
    """A cell's further runs read what its first one does."""
    firsts = {run.cell.cell_id: run.run_id for run in job.runs}
    again = [
        {
            **_run_document(run, with_staged_model(suite, run), settings),
            "first": firsts[run.cell.cell_id],
            "channels": dict(names[firsts[run.cell.cell_id]]),
        }
        for run in runs_again(job, suite)
    ]
    return {"again": again} if again else {}


def _run_document(run: Run, suite: Suite, settings: JobSettings) -> dict[str, Any]:
    own = json.loads(json.dumps(own_hyperparameters(run, suite)))
    launcher = _launcher(run, suite, settings, own)
    # The toolkit counts the devices of the instance; the document names them before there is one.
    devices = known_type(run.cell.settings.instance).devices_per_instance
    folder = f"{CONTAINER_FOLDER}/{run.run_id}"
    environment = run_environment(
        run, suite, step_log=f"{folder}/{STEP_LOG}", checkpoints=f"{folder}/{STATE}"
    )
    return {
        "run_id": run.run_id,
        "launcher": launcher,
        "processes_per_host": 1 if launcher == PROCESS else devices,
        "arguments": command_arguments(own),
        "hyperparameters": own,
        "environment": {
            name: value for name, value in environment.items() if name not in _inherited(suite)
        },
        **_batch(run),
    }


def _batch(run: Run) -> dict[str, Any]:
    """The search for a batch; without it, the parent takes the hyperparameters' batch."""
    search = run.cell.settings.batch_search
    settings = trained_settings(run)
    if search is None or not run.searches_batch:
        return {}
    path = ["settings", "batch_size_per_device"] if search.argument is None else [search.argument]
    step = settings.micro_batches if has_effect("micro_batches", settings) else 1
    order = {
        "choice": search.search.value,
        "first": settings.batch_size,
        "step": step,
        "path": path,
    }
    possible = dividing_batches(settings, world_size(settings) or 1)
    return {"batch": {**order, **({"possible": list(possible)} if possible else {})}}


def _launcher(run: Run, suite: Suite, settings: JobSettings, own: Mapping[str, Any]) -> str:
    """The planner gives a run with another launcher a job of its own."""
    image_uri = select_image_uri(run.cell.settings, suite.workload, settings)
    return LAUNCHERS[
        select_launcher(run.cell.settings, known_type(run.cell.settings.instance), image_uri, own)
    ]
