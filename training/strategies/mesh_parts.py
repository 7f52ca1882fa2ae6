"""Divides a model over a mesh of processes, in the order that works: each step builds on the
modules of those before.

1. The pipeline cuts the blocks into stages; each process keeps its own. Without a pipeline, the one
   stage has the loss.
2. The tensor plan shards the matrices of a stage over ``tensor``.
3. Checkpointing recomputes block by block; it is part of the model since it was built.
4. The compiler compiles the stage.
5. ``fully_shard`` shards each block, then the rest of the stage, over ``shard``, and averages over
   ``replicate``. With one shard there is none: the strategy averages the gradients once a step.

Values are loaded afterwards. Parameters have any shape [...].
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import distributed, nn
from torch.distributed import ProcessGroup
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import DTensor
from torch.distributed.tensor._utils import _compute_local_shape_and_global_offset
from transformers import PreTrainedModel

from traindyno.core.run.processes import Degrees, degrees_of, nearest_degrees_text, stage_count
from traindyno.core.suite.choices import TRAITS
from training.errors import WorkloadError
from training.models.blueprint import repeated_blocks
from training.models.gradients import sum_gradients
from training.models.objective import Objective
from training.models.pipeline_stages import Stage, cut
from training.process.process_group import start_process_group
from training.strategies import Setup
from training.strategies.tensor_layers import DividedLayers, checked_plan, is_converted
from training.strategies.whole_model import each_once

Holders = tuple[int, ...]
DIMENSIONS = ("pipeline", "replicate", "shard", "tensor")
WITH_NEIGHBOURING_STAGES = ("replicate", "shard", "pipeline", "tensor")


def whole_on(first: int, tensor: torch.Tensor) -> torch.Tensor | None:
    """Returns the whole of ``tensor`` on the CPU of rank ``first``, None on others.

    All that hold a part call it.

    Beside it there is one rank's part at a time. ``full_tensor`` makes up to three copies, and on
    every rank.
    """
    own = distributed.get_rank()
    if not isinstance(tensor, DTensor):
        return tensor.detach().cpu() if own == first else None
    mesh = tensor.device_mesh
    placements = tensor.placements
    one_of_each = tuple(0 if placement.is_replicate() else slice(None) for placement in placements)
    ranks = mesh.mesh[one_of_each].flatten().tolist()
    local = tensor.to_local().detach()
    if first not in ranks or own not in ranks:
        return None
    if own != first:
        if local.numel():
            distributed.send(local.contiguous(), dst=first)
        return None
    whole = torch.empty(tensor.shape, dtype=tensor.dtype)
    for rank in ranks:
        at = (mesh.mesh == rank).nonzero()[0].tolist()
        shape, offset = _compute_local_shape_and_global_offset(
            tensor.shape, mesh.shape, at, placements
        )
        place = whole[
            tuple(slice(begin, begin + size) for begin, size in zip(offset, shape, strict=True))
        ]
        if rank == first:
            place.copy_(local)
        elif place.numel():
            _receive(place, rank, local.device)
    return whole


def _receive(place: torch.Tensor, rank: int, device: torch.device) -> None:
    """Fills ``place`` [...], if it can't be received there, through one part on the device that
    sends.
    """
    if place.is_contiguous() and place.device == device:
        distributed.recv(place, src=rank)
        return
    part = torch.empty(place.shape, dtype=place.dtype, device=device)
    distributed.recv(part, src=rank)
    place.copy_(part)


class PipelineWeights:
    """It is equal on every rank, because each splits the same model in the same way."""

    def __init__(
        self, model: PreTrainedModel, parts: Sequence[Iterable[nn.Module]], inner_rank: int
    ) -> None:
        """``parts`` are the stages of each inner rank."""
        held = [
            {id(tensor) for stage in stages for tensor in (*stage.parameters(), *stage.buffers())}
            for stages in parts
        ]
        self._model = model
        self._inner_rank = inner_rank
        self._undivided = self._saved()
        self._holders: dict[str, Holders] = {
            name: tuple(rank for rank, ids in enumerate(held) if id(tensor) in ids)
            for name, tensor in self._undivided.items()
        }
        self._groups: dict[Holders, ProcessGroup] = {}

    def make_groups(self, replicas: Sequence[Sequence[int]]) -> None:
        """Makes one for each set of ranks that share weights; ``replicas`` are the job's ranks,
        replica by replica.
        """
        for holders in sorted({holders for holders in self._holders.values() if len(holders) > 1}):
            for ranks in replicas:
                members = [ranks[holder] for holder in holders]
                group = distributed.new_group(members)
                if distributed.get_rank() in members:
                    self._groups[holders] = group

    def parameters(self) -> list[nn.Parameter]:
        return self._parameters(lambda holders: self._inner_rank in holders)

    def first_held(self) -> list[nn.Parameter]:
        """The weights that no earlier rank holds: every weight of the model belongs to one rank."""
        return self._parameters(lambda holders: holders[0] == self._inner_rank)

    def held(self) -> dict[str, torch.Tensor]:
        """This rank's parameters and buffers, each once."""
        return each_once(
            {
                name: tensor
                for name, tensor in self._saved().items()
                if self._inner_rank in self._holders[name]
            }
        )

    def sum_shared_gradients(self) -> None:
        for shared, group in self._groups.items():
            sum_gradients(self._parameters(lambda holders, shared=shared: holders == shared), group)  # type: ignore[misc]

    def tie_again(self) -> None:
        """After a stage's modules have got other parameters: gives them to all modules that are
        tied to those.
        """
        changed: dict[int, torch.Tensor] = {}
        for name, tensor in self._saved().items():
            if tensor is not self._undivided[name]:
                changed.setdefault(id(self._undivided[name]), tensor)
        for name, undivided in self._undivided.items():
            tensor = changed.get(id(undivided), undivided)
            if isinstance(tensor, nn.Parameter):
                path, _, attribute = name.rpartition(".")
                self._model.get_submodule(path)._parameters[attribute] = tensor

    def stream(
        self, ranks: Sequence[int], restored: Callable[[str, torch.Tensor], torch.Tensor]
    ) -> Iterator[tuple[str, torch.Tensor]]:
        """Yields one weight after the other on the first of ``ranks``, nothing elsewhere.

        All processes call it.

        ``ranks`` are those of one pipeline. ``restored`` gives a whole weight the form that it is
        saved in.
        """
        rank = distributed.get_rank()
        for name, tensor in self._saved().items():
            holder = self._holders[name][0]
            whole = whole_on(ranks[holder], tensor) if self._inner_rank == holder else None
            if whole is not None:
                made = restored(name, whole)
                del whole  # a copy of it may have been restored
                if rank == ranks[0]:
                    yield name, made
                else:
                    distributed.send(made.contiguous(), dst=ranks[0])
                del made  # before there is memory for the next one
            elif rank == ranks[0] and holder != 0:
                received = torch.empty(tensor.shape, dtype=tensor.dtype)
                distributed.recv(received, src=ranks[holder])
                yield name, received
                del received

    def _parameters(self, is_wanted: Callable[[Holders], bool]) -> list[nn.Parameter]:
        """Each parameter once, also with several names."""
        wanted = {
            id(tensor): tensor
            for name, tensor in self._saved().items()
            if is_wanted(self._holders[name])
        }
        return [tensor for tensor in wanted.values() if isinstance(tensor, nn.Parameter)]

    def _saved(self) -> dict[str, torch.Tensor]:
        return self._model.state_dict(keep_vars=True)


class ProcessMesh:
    """Ranks of one replica read the same batches: those that differ in ``pipeline`` and ``tensor``
    only.
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
        """Over which ``fully_shard`` shards, and replicates if it has two dimensions."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What this process has of the model.

    ``stages``: by number, as it runs them. ``divided``: what the tensor plan did to each of them.
    ``is_converted``: of the whole model, so that all processes say the same.
    """

    stages: Mapping[int, nn.Module]
    stage_count: int
    weights: PipelineWeights
    divided: list[DividedLayers]
    is_converted: bool


def divide_model(model: PreTrainedModel, mesh: ProcessMesh, setup: Setup) -> Parts:
    degrees = mesh.degrees
    plan = (
        checked_plan(model, setup.settings.tensor_plan, degrees.tensor)
        if degrees.tensor > 1
        else None
    )
    converts = plan is not None and is_converted(model.base_model, plan)
    stages = _stages(model, degrees, setup)
    parts = [range(rank, len(stages), degrees.pipeline) for rank in range(degrees.pipeline)]
    blocks = repeated_blocks(model)
    for part in parts if plan is not None or degrees.shard > 1 else ():
        # A block is divided once, so only one of a process's stages can have it; ALBERT's is in all
        # of them.
        held = Counter(module for n in part for module in stages[n].modules())
        if any(held[block] > 1 for block in blocks):
            raise WorkloadError(
                "two stages of one process share a block, which can't be sharded or divided; "
                "expected shard_degree 1 and tensor_degree 1, or another pipeline_schedule than "
                "interleaved"
            )
    weights = PipelineWeights(
        model, [[stages[n] for n in part] for part in parts], mesh.rank("pipeline")
    )
    weights.make_groups(mesh.pipelines)
    own = {n: stages[n] for n in parts[mesh.rank("pipeline")]}
    divided: list[DividedLayers] = []
    run: dict[int, nn.Module] = {}
    for number, stage in own.items():
        if plan is not None:
            divided.append(DividedLayers(stage.model, mesh.mesh["tensor"], plan))
        run[number] = setup.compiler.compile(stage)
        if degrees.shard > 1:
            shard_stage(run[number], blocks, mesh, setup)
    weights.tie_again()
    return Parts(
        stages=run, stage_count=len(stages), weights=weights, divided=divided, is_converted=converts
    )


def _stages(model: PreTrainedModel, degrees: Degrees, setup: Setup) -> Sequence[Stage | Objective]:
    autocast = setup.number_format.autocast()
    if degrees.pipeline == 1:
        return [Objective(model, setup.task, autocast, setup.settings.loss_chunks)]
    return cut(model, stage_count(setup.settings, degrees), setup.task, autocast)


def shard_stage(
    stage: nn.Module, blocks: Iterable[nn.Module], mesh: ProcessMesh, setup: Setup
) -> None:
    """Parameters are communicated in the lower format; autocast decides where activations are
    computed in it, as with DDP. They stay gathered between the micro-batches of a pipeline.
    """
    policy = MixedPrecisionPolicy(
        param_dtype=setup.number_format.lower_type,
        reduce_dtype=torch.float32,
        cast_forward_inputs=False,
    )
    reshards = None if mesh.degrees.pipeline == 1 else False
    modules = set(stage.modules())
    for block in (module for module in blocks if module in modules):
        fully_shard(block, mesh=mesh.data_mesh, mp_policy=policy, reshard_after_forward=reshards)
    fully_shard(stage, mesh=mesh.data_mesh, mp_policy=policy, reshard_after_forward=reshards)
