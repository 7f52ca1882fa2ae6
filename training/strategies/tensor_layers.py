"""Divides the layers and experts of a model, or of a stage of it, over the processes of a tensor dimension.

Parameters and gradients have any shape [...].
"""

from collections.abc import Callable, Iterable, Mapping
from functools import partial

import torch
from torch import distributed, nn
from torch.distributed import ProcessGroup
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Replicate
from torch.distributed.tensor.parallel import ColwiseParallel, ParallelStyle, RowwiseParallel, parallelize_module
from transformers import PreTrainedModel
from transformers.distributed.expert_parallel import apply_expert_parallelism

from traindyno.core.suite.settings import TensorLayers
from training.errors import WorkloadError
from training.models.gradients import local_gradients
from training.models.tensor_plans import (
    COLUMNS,
    COLUMNS_GATHERED,
    EXPERT_DISPATCH,
    PARTIAL_GRADIENT,
    ROWS,
    ROWS_SPLIT,
    TensorPlan,
    check_divisible,
    divide_head_counts,
    matching,
    plan_for,
)
from training.strategies.conv1d import ConvertedLayers

TENSOR = "tensor"  # the dimension of the mesh
# Every rank of a tensor group has the same tokens: each computes its experts' part for all of them.
EXPERTS_BY = "all_reduce"
# Ranks compute a replicated gradient alike, up to rounding. One that lacks the other ranks' heads differs by far more.
MOST_DIFFERENCE = 1e-2
LEAST_SHARE = 1e-4


class DividedLayers:
    """A model that was divided on the meta device, before FSDP. ``converted`` gives its tensors as they are held."""

    def __init__(self, model: PreTrainedModel, mesh: DeviceMesh, plan: TensorPlan) -> None:
        base = model.base_model
        self._prefix = f"{model.base_model_prefix}."
        self._partial = [
            module
            for pattern, style in plan.styles.items()
            if style == PARTIAL_GRADIENT
            for _, module in matching(base, pattern)
        ]
        self.converted = ConvertedLayers(base, plan, mesh.size())
        parallelize_module(base, mesh, _styles(base, plan))
        apply_expert_parallelism(base, mesh, mesh, _expert_names(base, plan), ep_implementation=EXPERTS_BY)
        divide_head_counts(base, plan, mesh.size())

    @property
    def prefix(self) -> str:
        """What comes before a base model's names in those of the whole model."""
        return self._prefix

    def partial_gradients(self) -> list[nn.Parameter]:
        """The norms within a head: every rank has the whole weight, but its gradient covers only its own heads. They
        are summed over the tensor group once, after the last backward pass of a step.
        """
        return [parameter for module in self._partial for parameter in module.parameters()]


def checked_plan(model: PreTrainedModel, chosen: TensorLayers | None, degree: int) -> TensorPlan:
    """The plan of a whole model, for all of its stages. Raises WorkloadError if none fits the model and the degree."""
    plan = plan_for(model, chosen)
    check_divisible(model, plan, degree)
    return plan


def check_replicated_gradients(named: Iterable[tuple[str, torch.Tensor]], group: ProcessGroup) -> bool:
    """Returns whether they could be compared: not if one overflowed.

    Raises WorkloadError if ranks of the group have different gradients of a parameter that each holds whole: the plan
    divides what comes before or after it, and names it neither as divided nor as partial.
    """
    trained = ((name, each) for name, each in named if isinstance(each, nn.Parameter) and each.grad is not None)
    whole = {name: parameter for name, parameter in trained if not _is_divided(parameter)}
    if not whole:
        return True
    norms = torch.stack(torch._foreach_norm(local_gradients(whole.values()))).float()
    least = norms.nan_to_num(nan=torch.inf, posinf=torch.inf)  # a reduction may drop NaN
    most = least.clone()
    distributed.all_reduce(least, op=distributed.ReduceOp.MIN, group=group)
    distributed.all_reduce(most, op=distributed.ReduceOp.MAX, group=group)
    if not most.isfinite().all():
        return False
    differs = (most - least > MOST_DIFFERENCE * most) & (most > LEAST_SHARE * most.max())
    if differs.any():
        wrong = [name for name, is_wrong in zip(whole, differs.tolist(), strict=True) if is_wrong]
        raise WorkloadError(
            f"under this tensor plan, processes compute different gradients of {', '.join(wrong[:3])}, which all hold"
            " whole; expected a tensor_plan that does not divide the layers around it, or strategy fsdp"
        )
    return True


def _is_divided(tensor: torch.Tensor) -> bool:
    """Whether ranks of a tensor group hold different parts of ``tensor`` [...], which may be sharded by FSDP, too."""
    if not isinstance(tensor, DTensor):
        return False
    placed = zip(tensor.device_mesh.mesh_dim_names or (), tensor.placements, strict=True)
    return any(name == TENSOR and not placement.is_replicate() for name, placement in placed)


def _styles(base: nn.Module, plan: TensorPlan) -> dict[str, ParallelStyle]:
    """By path: a stage of a pipeline lacks the layers of others."""
    makers: Mapping[str, Callable[[], ParallelStyle]] = {
        COLUMNS: ColwiseParallel,
        ROWS: RowwiseParallel,
        COLUMNS_GATHERED: partial(ColwiseParallel, output_layouts=Replicate()),
        ROWS_SPLIT: partial(RowwiseParallel, input_layouts=Replicate()),
    }
    divided = ((pattern, makers[style]) for pattern, style in plan.styles.items() if style in makers)
    return {path: make() for pattern, make in divided for path, _ in matching(base, pattern)}


def _expert_names(base: nn.Module, plan: TensorPlan) -> dict[str, str]:
    """Names of parameters and modules, instead of patterns; parameters are first, as in the plan."""
    found: dict[str, str] = {}
    for pattern, style in plan.experts.items():
        module, _, parameter = pattern.rpartition(".")
        if style == EXPERT_DISPATCH:
            found |= {path: style for path, _ in matching(base, pattern)}
        else:
            found |= {f"{path}.{parameter}": style for path, _ in matching(base, module)}
    return found
