"""FSDP2: every process keeps a slice of each parameter, gradient and optimizer state, and gathers blocks as it goes."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import distributed
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import DTensor

from traindyno.core.suite.choices import ShardScope
from traindyno.core.suite.processes import replica_count
from training.models.blocks import repeated_blocks
from training.models.objective import Objective
from training.process.process_group import start_process_group
from training.strategies import Setup, TrainingStrategy
from training.strategies.whole_model import WholeModelStrategy


class FullyShardedDataParallel(WholeModelStrategy):
    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self.data_rank = setup.topology.rank
        self.data_world_size = replica_count(setup.settings, setup.topology.world_size)
        start_process_group(setup.accelerator.process_group_backend, setup.topology, setup.accelerator.device)
        self._sharded: FSDPModule

    def _cut(self, objective: Objective) -> None:
        mesh = _mesh(self._setup)
        policy = _mixed_precision(self._setup)
        for block in repeated_blocks(objective.model):
            fully_shard(block, mesh=mesh, mp_policy=policy)
        self._sharded = fully_shard(objective, mesh=mesh, mp_policy=policy)

    @contextmanager
    def _without_communication(self) -> Iterator[None]:
        self._sharded.set_requires_gradient_sync(False)
        try:
            yield
        finally:
            self._sharded.set_requires_gradient_sync(True)

    def agree_on_overflow(self, overflow: torch.Tensor) -> None:
        distributed.all_reduce(overflow, op=distributed.ReduceOp.MAX)

    def stream_state_dict(self) -> Iterator[tuple[str, torch.Tensor]]:
        for name, tensor in self._objective.model.state_dict().items():
            if isinstance(tensor, DTensor):
                tensor = tensor.full_tensor()  # noqa: PLW2901  # one name, so that it is freed before the next
            if self._setup.topology.is_first:
                yield name, tensor.cpu()


def _mesh(setup: Setup) -> DeviceMesh:
    """A hybrid mesh shards within an instance, where links are fast, and replicates across instances."""
    device_type = setup.accelerator.device.type
    world_size, per_instance = setup.topology.world_size, setup.topology.local_world_size
    if setup.settings.shard_scope is ShardScope.FULL:
        return init_device_mesh(device_type, (world_size,), mesh_dim_names=("shard",))
    shape = (world_size // per_instance, per_instance)
    return init_device_mesh(device_type, shape, mesh_dim_names=("replicate", "shard"))


def _mixed_precision(setup: Setup) -> MixedPrecisionPolicy:
    """Parameters are communicated in the lower format; autocast decides where activations are computed in it, as with
    DDP.
    """
    return MixedPrecisionPolicy(
        param_dtype=setup.number_format.lower_type, reduce_dtype=torch.float32, cast_forward_inputs=False
    )


def build(setup: Setup) -> TrainingStrategy:
    return FullyShardedDataParallel(setup)
