"""The rank of this process in the job, from its launcher or torch.distributed, and its start time."""

import json
import os
import socket
import sys
import time
from pathlib import Path
from typing import Iterator, List, Mapping, NamedTuple, Optional, Tuple

from traindyno.callbacks.clock import now
from traindyno.core.jobs.journal_format import MARK_VARIABLE
from traindyno.core.step_log.line import FORKED, LAUNCH_VARIABLE, SHARED_JOB_VARIABLE

# The launchers are torchrun, SageMaker's MPI and SMDDP runners, and Slurm.
RANK_VARIABLES = ("RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID")
WORLD_SIZE_VARIABLES = ("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_NTASKS")
JOB_VARIABLE = "TRAINING_JOB_NAME"
LAUNCH, IMPORT, FORK = "launch", "import", "fork"
# These fields of /proc/<pid>/stat follow the command. The start is in clock ticks since the boot.
PARENT_FIELD, START_FIELD = 1, 19


class Process(NamedTuple):
    rank: int
    world_size: int
    host: str
    job_name: str
    launch: Optional[str]


def this_process(environment: Mapping[str, str] = os.environ) -> Process:
    rank, world_size = _from_torch() or (
        _first(environment, RANK_VARIABLES, 0),
        launched_world_size(environment),
    )
    host = environment.get("SM_CURRENT_HOST") or socket.gethostname()
    job_name = environment.get("TRAINING_JOB_NAME") or environment.get("TRAINDYNO_RUN_ID") or "job"
    return Process(rank, world_size, host, job_name, environment.get(LAUNCH_VARIABLE))


def launched_world_size(environment: Mapping[str, str] = os.environ) -> int:
    """The number of processes that the launcher started, whether or not they found each other."""
    return _first(environment, WORLD_SIZE_VARIABLES, 1)


def started() -> Optional[float]:
    """Epoch seconds at which this process began; None if the system does not provide it (Linux does)."""
    return _started(os.getpid())


def launcher_started(environment: Mapping[str, str] = os.environ) -> Optional[float]:
    """Epoch seconds at which the first launcher of this process began (a container's entry point, torchrun), or None.

    A launcher is an ancestor with this job's name in its environment. The parent of a shared job is not one: it has
    run other runs before.
    """
    names = [name for name in (JOB_VARIABLE, MARK_VARIABLE) if environment.get(name)]
    marks = {"{}={}".format(name, environment[name]).encode() for name in names}
    launched, ancestor = None, os.getppid()
    while environment.get(JOB_VARIABLE) and ancestor > 0 and marks <= set(environment_of(ancestor)):
        launched, ancestor = _started(ancestor), _parent_of(ancestor)
    return launched


def phases_before(log_began: float) -> Iterator[Tuple[str, float, float]]:
    """Yields name, begin and end of what came before this process had a log: its launcher's start, then its imports.

    A forked process has not done its imports itself, and their time is not its own: that phase has another name.
    """
    began, launched = started(), launcher_started()
    if began is not None and began <= log_began:
        if launched is not None and launched <= began:
            yield LAUNCH, launched, began
        yield FORK if is_forked() else IMPORT, began, log_began


def is_forked(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether a shared job forked this run's processes from one that had done the imports."""
    return bool(json.loads(environment.get(SHARED_JOB_VARIABLE) or "{}").get(FORKED))


def _started(process_id: int) -> Optional[float]:
    fields = _stat(process_id)
    if len(fields) <= START_FIELD:
        return None
    since_boot = int(fields[START_FIELD]) / os.sysconf("SC_CLK_TCK")
    return min(now(), now() - (time.clock_gettime(time.CLOCK_BOOTTIME) - since_boot))


def _parent_of(process_id: int) -> int:
    fields = _stat(process_id)
    return int(fields[PARENT_FIELD]) if fields else 0


def _stat(process_id: int) -> List[str]:
    """The fields after the command in brackets; empty without /proc, or if the process does not exist."""
    try:
        return Path("/proc/{}/stat".format(process_id)).read_text().rpartition(")")[2].split()
    except OSError:
        return []


def environment_of(process_id: int) -> List[bytes]:
    try:
        return Path("/proc/{}/environ".format(process_id)).read_bytes().split(b"\0")
    except OSError:
        return []


def _from_torch() -> Optional[Tuple[int, int]]:
    distributed = getattr(sys.modules.get("torch"), "distributed", None)
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank(), distributed.get_world_size()
    return None


def _first(environment: Mapping[str, str], names: Tuple[str, ...], default: int) -> int:
    return next((int(environment[name]) for name in names if environment.get(name, "").isdigit()), default)
