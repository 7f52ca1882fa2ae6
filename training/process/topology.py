"""This process's rank and host among the job's processes, from the launcher's environment variables."""

import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass

# torchrun's come first, then those of the MPI runners of SageMaker's older containers.
RANK = ("RANK", "OMPI_COMM_WORLD_RANK")
WORLD_SIZE = ("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE")
LOCAL_RANK = ("LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK")
LOCAL_WORLD_SIZE = ("LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE")


@dataclass(frozen=True, slots=True, kw_only=True)
class Topology:
    rank: int = 0
    world_size: int = 1
    local_rank: int = 0
    local_world_size: int = 1
    host: str = ""

    @property
    def is_first(self) -> bool:
        return self.rank == 0


def read_topology(environment: Mapping[str, str] = os.environ) -> Topology:
    return Topology(
        rank=_read(environment, RANK, 0),
        world_size=_read(environment, WORLD_SIZE, 1),
        local_rank=_read(environment, LOCAL_RANK, 0),
        local_world_size=_read(environment, LOCAL_WORLD_SIZE, 1),
        host=environment.get("SM_CURRENT_HOST") or socket.gethostname(),
    )


def _read(environment: Mapping[str, str], names: tuple[str, ...], default: int) -> int:
    return next((int(environment[name]) for name in names if name in environment), default)
