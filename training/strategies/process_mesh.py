"""The processes of a job on a mesh with a dimension for each kind of parallelism.

Parameters have any shape [...].
"""

import numpy as np
import torch
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.tensor import DTensor

from traindyno.core.run.processes import degrees_of, nearest_degrees_text
from traindyno.core.suite.choices import TRAITS
from training.errors import WorkloadError
from training.process.process_group import start_process_group
from training.strategies import Setup

DIMENSIONS = ("pipeline", "replicate", "shard", "tensor")
WITH_NEIGHBOURING_STAGES = ("replicate", "shard", "pipeline", "tensor")


class ProcessMesh:
    """The processes of a job by their places in the four dimensions.

    Ranks that differ only in ``pipeline`` and ``tensor`` are one replica and read the same batches.
    """

    def __init__(self, setup: Setup) -> None:
        world_size = setup.topology.world_size
        self.degrees = degrees_of(setup.settings, world_size)
        if self.degrees.processes != world_size:
            sizes = " × ".join(
                f"{name}_degree {getattr(self.degrees, name)}" for name in DIMENSIONS
            )
            nearest = nearest_degrees_text(setup.settings, world_size)
            raise WorkloadError(
                f"{sizes} is not the number of the job's processes, {world_size}; expected "
                f"{nearest}"
            )
        start_process_group(
            setup.accelerator.process_group_backend, setup.topology, setup.accelerator.device
        )
        order = (
            WITH_NEIGHBOURING_STAGES
            if TRAITS[setup.settings.strategy].stages_are_neighbours
            else DIMENSIONS
        )
        shape = tuple(getattr(self.degrees, name) for name in order)
        self.mesh: DeviceMesh = init_device_mesh(
            setup.accelerator.device.type, shape, mesh_dim_names=order
        )
        # Kept, because the mesh makes another mesh at each question, and each step asks.
        self._ranks = {name: int(self.mesh[name].get_local_rank()) for name in order}
        self.data_rank = self.rank("replicate") * self.degrees.shard + self.rank("shard")
        stages_last = np.moveaxis(np.arange(world_size).reshape(shape), order.index("pipeline"), -1)
        self.pipelines: list[list[int]] = stages_last.reshape(-1, self.degrees.pipeline).tolist()

    def rank(self, dimension: str) -> int:
        return self._ranks[dimension]

    @property
    def data_mesh(self) -> DeviceMesh:
        """The mesh over which ``fully_shard`` shards, and replicates if it has two dimensions."""
        return self.mesh["replicate", "shard"] if self.degrees.replicate > 1 else self.mesh["shard"]

    def share(self, count: int) -> int:
        """This rank's part of what its replica does; the parts add up to ``count``."""
        number = self.rank("pipeline") * self.degrees.tensor + self.rank("tensor")
        parts = self.degrees.per_replica
        return count * (number + 1) // parts - count * number // parts

    def holders(self, tensor: torch.Tensor) -> int:
        """How many processes hold the same part [...] of a parameter."""
        distributed = 1
        if isinstance(tensor, DTensor):
            for size, placement in zip(tensor.device_mesh.shape, tensor.placements, strict=True):
                # Not is_shard(), which is False for what two dimensions of the mesh shard along one
                # of the tensor's.
                distributed *= 1 if placement.is_replicate() else size
        return self.degrees.replicas * self.degrees.tensor // distributed
