"""The rank of this process in the job, from its launcher or torch.distributed, and its start
time.
"""

import json
import os
import socket
import sys
import time
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Mapping, NamedTuple, Optional, Tuple

from traindyno.callbacks.clock import now
from traindyno.core.jobs.journal_format import MARK_VARIABLE
from traindyno.core.step_log.line import FORKED, LAUNCH_VARIABLE, SHARED_JOB_VARIABLE

# The launchers are torchrun, SageMaker's MPI and SMDDP runners, and Slurm.
RANK_VARIABLES = ("RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID")
WORLD_SIZE_VARIABLES = ("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_NTASKS")
JOB_VARIABLE = "TRAINING_JOB_NAME"
LAUNCH = "launch"
IMPORT = "import"
FORK = "fork"
# These fields of /proc/<pid>/stat follow the command. The start is in clock ticks since the boot.
PARENT_FIELD = 1
START_FIELD = 19
PROCESS_GROUP = "process_group"  # a fact of the environment
INDEPENDENT = "independent"
# Modules that form a group, and how the group's size is read; none is imported here.
SIZES = {
    "torch.distributed": lambda torch: (
        torch.get_world_size() if torch.is_available() and torch.is_initialized() else None
    ),
    "torch_xla.runtime": lambda runtime: runtime.world_size(),
    "smdistributed.modelparallel.torch": lambda smp: smp.size(),
    "smdistributed.dataparallel.torch.distributed": lambda smddp: smddp.get_world_size(),
    "horovod.torch": lambda horovod: horovod.size(),
    "mpi4py.MPI": lambda mpi: mpi.COMM_WORLD.Get_size() if mpi.Is_initialized() else None,
}  # type: Dict[str, Callable[[Any], Optional[int]]]
PLAIN = "torch.distributed.init_process_group() before the first step"
LIGHTNING = (
    'Lightning\'s Trainer(devices=int(os.environ["LOCAL_WORLD_SIZE"]), '
    'num_nodes=int(os.environ["GROUP_WORLD_SIZE"]))'
)
# What makes a framework find the other processes, by the module that its script imports. Trainer
# imports Accelerate.
REMEDIES = {
    "traindyno.callbacks.lightning": LIGHTNING,
    "traindyno.callbacks.hf_trainer": "TrainingArguments(use_cpu=True) on a CPU",
    "accelerate": "Accelerator(cpu=True) on a CPU",
}


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
    """Epoch seconds at which this process began; None if the system does not provide it (Linux
    does).
    """
    return _started(os.getpid())


def launcher_started(environment: Mapping[str, str] = os.environ) -> Optional[float]:
    """Epoch seconds at which the first launcher of this process began (a container's entry point,
    torchrun), or None.

    A launcher is an ancestor with this job's name in its environment. The parent of a shared job is
    not one: it has run other runs before.
    """
    names = [name for name in (JOB_VARIABLE, MARK_VARIABLE) if environment.get(name)]
    marks = {"{}={}".format(name, environment[name]).encode() for name in names}
    launched = None
    ancestor = os.getppid()
    while environment.get(JOB_VARIABLE) and ancestor > 0 and marks <= set(environment_of(ancestor)):
        fields = _stat(ancestor)
        launched = _started(ancestor)
        ancestor = int(fields[PARENT_FIELD]) if fields else 0
    return launched


def phases_before(log_began: float) -> Iterator[Tuple[str, float, float]]:
    """Yields name, begin and end of what came before this process had a log: its launcher's start,
    then its imports.

    A forked process has not done its imports itself, and their time is not its own: that phase has
    another name.
    """
    began = started()
    launched = launcher_started()
    if began is not None and began <= log_began:
        if launched is not None and launched <= began:
            yield LAUNCH, launched, began
        yield FORK if is_forked() else IMPORT, began, log_began


def is_forked() -> bool:
    """Whether a shared job forked this run's processes from one that had done the imports."""
    return bool(json.loads(os.environ.get(SHARED_JOB_VARIABLE) or "{}").get(FORKED))


def _started(process_id: int) -> Optional[float]:
    fields = _stat(process_id)
    if len(fields) <= START_FIELD:
        return None
    since_boot = int(fields[START_FIELD]) / os.sysconf("SC_CLK_TCK")
    return min(now(), now() - (time.clock_gettime(time.CLOCK_BOOTTIME) - since_boot))


def _stat(process_id: int) -> List[str]:
    """The fields after the command in brackets; empty without /proc, or if the process does not
    exist.
    """
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
    return next(
        (int(environment[name]) for name in names if environment.get(name, "").isdigit()), default
    )


def find_process_group() -> Optional[Tuple[str, int]]:
    """Returns the module that formed this process's group of several, and the group's size; None
    without a group.
    """
    if _accelerate_is_alone():
        return None
    for name, size_of in SIZES.items():
        module = sys.modules.get(name)
        size = None if module is None else _size(module, size_of)
        if size is not None and size > 1:
            return name, size
    return None


def require_process_group(launched: int) -> Dict[str, Any]:
    """Returns the group of one of ``launched`` processes as a fact.

    Raises RuntimeError if it has none.
    """
    group = find_process_group()
    if group is None:
        remedy = next((remedy for name, remedy in REMEDIES.items() if name in sys.modules), PLAIN)
        raise RuntimeError(
            "{} processes were started, but this one has no process group: each trains alone on "
            "all of the data, and their samples would be counted as samples of one run; expected "
            "{}; or step_log.independent() before the first step, "
            "if each is meant to train alone".format(launched, remedy)
        )
    return {PROCESS_GROUP: group[0], "process_group_size": group[1]}


def _accelerate_is_alone() -> bool:
    """Accelerate, which Trainer uses, can form torch's group and train without it: on a CPU that it
    was not told of.
    """
    state = getattr(sys.modules.get("accelerate.state"), "AcceleratorState", None)
    # The object would be made by asking for it: what its instances share is there once the script
    # has made one.
    shared = getattr(state, "_shared_state", {})
    return bool(shared) and shared.get("num_processes") == 1


def _size(module: Any, size_of: Callable[[Any], Optional[int]]) -> Optional[int]:
    """Size of the library's group; None if it is imported but not started, which each library tells
    by an exception of its own.
    """
    try:
        return size_of(module)
    except Exception:  # noqa: BLE001
        return None
