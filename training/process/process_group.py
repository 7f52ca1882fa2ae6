"""The job's process group, whose time limits end a run if a peer has failed."""

import json
import os
import socket
import time
from dataclasses import dataclass
from datetime import timedelta

import torch
from torch import distributed

from training.errors import WorkloadError

# torchrun's variables come first, then the MPI runners' of SageMaker's older containers.
RANK = ("RANK", "OMPI_COMM_WORLD_RANK")
WORLD_SIZE = ("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE")
LOCAL_RANK = ("LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK")
LOCAL_WORLD_SIZE = ("LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE")
MASTER_ADDRESS = "MASTER_ADDR"
# It is longer than the slowest compilation of one rank while the others wait in a collective.
COLLECTIVE_TIMEOUT = timedelta(minutes=5)
# Gloo's thread needs the interpreter lock to drop its last collective, and destroying the group
# waits for that thread while it holds the lock (torch 2.13). While this thread sleeps, Gloo's
# thread can finish.
DRAIN_SECONDS = 0.2


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


def read_topology() -> Topology:
    return Topology(
        rank=_read(RANK, 0),
        world_size=_read(WORLD_SIZE, 1),
        local_rank=_read(LOCAL_RANK, 0),
        local_world_size=_read(LOCAL_WORLD_SIZE, 1),
        host=os.environ.get("SM_CURRENT_HOST") or socket.gethostname(),
    )


def _read(names: tuple[str, ...], default: int) -> int:
    return next((int(os.environ[name]) for name in names if name in os.environ), default)


def start_process_group(backend: str, topology: Topology, device: torch.device) -> None:
    if distributed.is_initialized():  # a caller runs several strategies one after another
        return
    if MASTER_ADDRESS not in os.environ:
        raise WorkloadError(
            f"a strategy of several processes was started without {MASTER_ADDRESS}; expected "
            "torchrun or SageMaker's launcher, or strategy single"
        )
    interface = os.environ.get("SM_NETWORK_INTERFACE_NAME")
    if interface and len(json.loads(os.environ.get("SM_HOSTS", "[]"))) > 1:
        # Gloo binds to what the host's name resolves to, which may be loopback.
        os.environ.setdefault("GLOO_SOCKET_IFNAME", interface)
    # A rank that waits for a dead NCCL peer is ended by the watchdog instead of hanging.
    os.environ.setdefault("TORCH_NCCL_ASYNC_ERROR_HANDLING", "1")
    distributed.init_process_group(
        backend,
        rank=topology.rank,
        world_size=topology.world_size,
        timeout=COLLECTIVE_TIMEOUT,
        device_id=device if device.type == "cuda" else None,
    )


def sum_over_ranks(values: torch.Tensor) -> torch.Tensor:
    """Returns on the CPU the sum of ``values`` [...] over ranks; with one process, the values
    themselves.
    """
    if not distributed.is_initialized():
        return values
    summed = _where_collectives_run(values)
    distributed.all_reduce(summed)
    return summed.cpu()


def decided_by_first_rank(decision: bool) -> bool:
    """Returns the first rank's decision on every rank."""
    return bool(number_of_first_rank(decision))


def number_of_first_rank(number: int) -> int:
    """Returns the first rank's number on every rank, all of which must call this."""
    if not distributed.is_initialized():
        return number
    answer = _where_collectives_run(torch.tensor(int(number)))
    distributed.broadcast(answer, src=0)
    return int(answer)


def _where_collectives_run(values: torch.Tensor) -> torch.Tensor:
    """Returns ``values`` [...] on a device of the group."""
    has_cpu_backend = "gloo" in distributed.distributed_c10d.get_backend_config()
    return (
        values if has_cpu_backend else values.to(torch.device("cuda", torch.cuda.current_device()))
    )


def end_process_group() -> None:
    if distributed.is_initialized():
        time.sleep(DRAIN_SECONDS)
        distributed.destroy_process_group()
