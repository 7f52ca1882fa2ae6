"""Puts ranks in a grid: a row holds the parts of one replica of the model, a column the same part of each replica."""

from collections.abc import Iterable

import torch
from torch import distributed, nn
from torch.distributed import ProcessGroup
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh

from traindyno.core.suite.processes import processes_per_replica, replica_count
from training.errors import WorkloadError
from training.models.gradients import sum_gradients
from training.process.process_group import start_process_group
from training.strategies import Setup


class Replicas:
    """The ranks of a replica are neighbours, so that a replica stays within an instance if it fits in one."""

    def __init__(self, setup: Setup, kind: str) -> None:
        world_size = setup.topology.world_size
        self.degree = processes_per_replica(setup.settings, world_size)
        if world_size % self.degree:
            raise WorkloadError(
                f"{kind}_degree is {self.degree}, which does not divide the job's {world_size} processes"
            )
        start_process_group(setup.accelerator.process_group_backend, setup.topology, setup.accelerator.device)
        self.data_world_size = replica_count(setup.settings, world_size)
        self.data_rank, self.inner_rank = divmod(setup.topology.rank, self.degree)
        self.ranks = [list(range(first, first + self.degree)) for first in range(0, world_size, self.degree)]
        mesh = init_device_mesh(
            setup.accelerator.device.type, (self.data_world_size, self.degree), mesh_dim_names=("data", kind)
        )
        self.inner_mesh: DeviceMesh = mesh[kind]
        self.inner_group: ProcessGroup = mesh.get_group(kind)
        self._data_group: ProcessGroup = mesh.get_group("data")

    def average_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        if self.data_world_size > 1:
            sum_gradients(parameters, self._data_group, divisor=self.data_world_size)

    def agree_on_overflow(self, overflow: torch.Tensor) -> None:
        distributed.all_reduce(overflow, op=distributed.ReduceOp.MAX)

    def share(self, count: int) -> int:
        return count * (self.inner_rank + 1) // self.degree - count * self.inner_rank // self.degree
