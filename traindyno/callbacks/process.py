"""Which process of the job this is, as its launcher or torch.distributed says."""

import os
import socket
import sys
from typing import Mapping, NamedTuple, Optional, Tuple

# torchrun, SageMaker's MPI and SMDDP runners, Slurm
RANK_VARIABLES = ("RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID")
WORLD_SIZE_VARIABLES = ("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_NTASKS")


class Process(NamedTuple):
    rank: int
    world_size: int
    host: str
    job_name: str


def this_process(environment: Mapping[str, str] = os.environ) -> Process:
    rank, world_size = _from_torch() or (
        _first(environment, RANK_VARIABLES, 0),
        _first(environment, WORLD_SIZE_VARIABLES, 1),
    )
    host = environment.get("SM_CURRENT_HOST") or socket.gethostname()
    job_name = environment.get("TRAINING_JOB_NAME") or environment.get("TRAINDYNO_RUN_ID") or "job"
    return Process(rank, world_size, host, job_name)


def _from_torch() -> Optional[Tuple[int, int]]:
    distributed = getattr(sys.modules.get("torch"), "distributed", None)
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank(), distributed.get_world_size()
    return None


def _first(environment: Mapping[str, str], names: Tuple[str, ...], default: int) -> int:
    return next((int(environment[name]) for name in names if environment.get(name, "").isdigit()), default)
