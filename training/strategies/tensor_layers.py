"""Divides the layers and experts of a model, or of a stage of it, over the processes of a tensor
dimension.

GPT-2's Conv1D layers become linear layers, and the rows of fused projections, such as ModernBERT's,
are ordered so that whole heads can be sharded; and back again for saving. A linear layer's weight
is [O, I], a Conv1D's is [I, O]; both have a bias [O]. Other parameters and gradients have any shape
[...].
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial

import torch
from torch import distributed, nn
from torch.distributed import ProcessGroup
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Replicate
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    ParallelStyle,
    RowwiseParallel,
    parallelize_module,
)
from transformers import PreTrainedModel
from transformers.distributed.expert_parallel import apply_expert_parallelism
from transformers.pytorch_utils import Conv1D

from traindyno.core.run.settings import TensorLayers
from training.errors import WorkloadError
from training.models.blueprint import Readable
from training.models.gradients import local_gradients
from training.models.tensor_plan import COLUMNS, ROWS, TensorPlan
from training.models.tensor_plans import (
    COLUMNS_GATHERED,
    EXPERT_DISPATCH,
    PARTIAL_GRADIENT,
    ROWS_SPLIT,
    check_divisible,
    divide_head_counts,
    features,
    fused_count,
    matching,
    plan_for,
)

RowOrder = torch.Tensor | None
TENSOR = "tensor"  # the dimension of the mesh
# Every rank of a tensor group has the same tokens: each computes its experts' part for all of them.
EXPERTS_BY = "all_reduce"
# Ranks compute a replicated gradient alike, up to rounding. One that lacks the other ranks' heads
# differs by far more.
MOST_DIFFERENCE = 1e-2
LEAST_SHARE = 1e-4
OTHER_PLAN = "expected a tensor_plan that does not divide the layers around it, or strategy fsdp"


class ConvertedLayers:
    """Replaces every Conv1D that the plan names by a linear layer on the meta device.

    ``convert`` gives a layer's tensor as the sharded model keeps it.
    """

    def __init__(self, model: PreTrainedModel, plan: TensorPlan, degree: int) -> None:
        """Converts the layers of a whole model, or of the base model of a stage."""
        self._row_orders: dict[str, RowOrder] = {}  # by the layer's name in the whole model
        self._transposed: set[str] = set()
        base = model.base_model
        for path, layer in list(_convertible(base, plan)):
            if isinstance(layer, Conv1D):
                base.set_submodule(
                    path, nn.Linear(layer.nx, layer.nf, device="meta", dtype=layer.weight.dtype)
                )
                self._transposed.add(f"{model.base_model_prefix}.{path}")
            rows = features(layer)[1]
            self._row_orders[f"{model.base_model_prefix}.{path}"] = _whole_heads_per_rank(
                rows, fused_count(plan, path), degree
            )

    def convert(self, name: str, whole: Readable) -> Readable:
        """The inverse of ``restore``."""
        path, _, kind = name.rpartition(".")
        if path not in self._row_orders:
            return whole
        rows = whole[...].t() if kind == "weight" and path in self._transposed else whole[...]
        order = self._row_orders[path]
        return rows if order is None else rows[order]

    def restore(self, name: str, tensor: torch.Tensor) -> torch.Tensor:
        """Gives a whole tensor the form in which transformers keeps it.

        A tensor of a layer that is not converted stays as it is.

        Args:
            name: The tensor's name in the model.
            tensor: [O, I] or [O]

        Returns:
            [I, O] for a Conv1D's weight, else [O, I] or [O].
        """
        path, _, kind = name.rpartition(".")
        if path not in self._row_orders:
            return tensor
        order = self._row_orders[path]
        rows = tensor if order is None else tensor[order.argsort()]
        return rows.t() if kind == "weight" and path in self._transposed else rows


def is_converted(base: nn.Module, plan: TensorPlan) -> bool:
    """Whether the plan makes the model hold a tensor in another form than transformers does."""
    return any(True for _ in _convertible(base, plan))


def _convertible(base: nn.Module, plan: TensorPlan) -> Iterator[tuple[str, Conv1D | nn.Linear]]:
    for pattern in plan.styles:
        for path, layer in matching(base, pattern):
            if isinstance(layer, Conv1D) or (
                isinstance(layer, nn.Linear) and fused_count(plan, path) > 1
            ):
                yield path, layer


def _whole_heads_per_rank(feature_count: int, projection_count: int, degree: int) -> RowOrder:
    """Returns a row order [O]: rank r's slice holds its heads of the query, then of the key, then
    of the value.
    """
    if projection_count == 1:
        return None
    by_projection_and_rank: Sequence[Sequence[torch.Tensor]] = [
        projection.chunk(degree)
        for projection in torch.arange(feature_count).chunk(projection_count)
    ]
    return torch.cat([parts[rank] for rank in range(degree) for parts in by_projection_and_rank])


class DividedLayers:
    """A model that was divided on the meta device, before FSDP.

    ``converted`` gives its tensors as they are held.
    """

    def __init__(self, model: PreTrainedModel, mesh: DeviceMesh, plan: TensorPlan) -> None:
        base = model.base_model
        self._partial = [
            module
            for pattern, style in plan.styles.items()
            if style == PARTIAL_GRADIENT
            for _, module in matching(base, pattern)
        ]
        self.converted = ConvertedLayers(model, plan, mesh.size())
        parallelize_module(base, mesh, _styles(base, plan))
        apply_expert_parallelism(
            base, mesh, mesh, _expert_names(base, plan), ep_implementation=EXPERTS_BY
        )
        divide_head_counts(base, plan, mesh.size())

    def partial_gradients(self) -> list[nn.Parameter]:
        """The norms within a head: every rank has the whole weight, but its gradient covers only
        its own heads. They are summed over the tensor group once, after the last backward pass of a
        step.
        """
        return [parameter for module in self._partial for parameter in module.parameters()]


def checked_plan(model: PreTrainedModel, chosen: TensorLayers | None, degree: int) -> TensorPlan:
    """The plan of a whole model, for all of its stages.

    Raises WorkloadError if none fits the model and the degree.
    """
    plan = plan_for(model, chosen)
    check_divisible(model, plan, degree)
    return plan


def check_replicated_gradients(
    named: Iterable[tuple[str, torch.Tensor]], group: ProcessGroup
) -> bool:
    """Returns whether they could be compared: not if one overflowed.

    Raises WorkloadError if ranks of the group have different gradients of a parameter that each
    holds whole: the plan divides what comes before or after it, and names it neither as divided nor
    as partial.
    """
    trained = (
        (name, parameter)
        for name, parameter in named
        if isinstance(parameter, nn.Parameter) and parameter.grad is not None
    )
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
            "under this tensor plan, processes compute different gradients of "
            f"{', '.join(wrong[:3])}, which all hold whole; {OTHER_PLAN}"
        )
    return True


def _is_divided(tensor: torch.Tensor) -> bool:
    """Whether ranks of a tensor group hold different parts of ``tensor`` [...], which may be
    sharded by FSDP, too.
    """
    if not isinstance(tensor, DTensor):
        return False
    placed = zip(tensor.device_mesh.mesh_dim_names or (), tensor.placements, strict=True)
    return any(name == TENSOR and not placement.is_replicate() for name, placement in placed)


def _styles(base: nn.Module, plan: TensorPlan) -> dict[str, ParallelStyle]:
    """The styles of layers by their paths. A stage of a pipeline lacks the layers of others."""
    makers: Mapping[str, Callable[[], ParallelStyle]] = {
        COLUMNS: ColwiseParallel,
        ROWS: RowwiseParallel,
        COLUMNS_GATHERED: partial(ColwiseParallel, output_layouts=Replicate()),
        ROWS_SPLIT: partial(RowwiseParallel, input_layouts=Replicate()),
    }
    divided = (
        (pattern, makers[style]) for pattern, style in plan.styles.items() if style in makers
    )
    return {path: make() for pattern, make in divided for path, _ in matching(base, pattern)}


def _expert_names(base: nn.Module, plan: TensorPlan) -> dict[str, str]:
    """Names of parameters and modules, instead of patterns; parameters are first, as in the
    plan.
    """
    styles: dict[str, str] = {}
    for pattern, style in plan.experts.items():
        module, _, parameter = pattern.rpartition(".")
        if style == EXPERT_DISPATCH:
            styles |= {path: style for path, _ in matching(base, pattern)}
        else:
            styles |= {f"{path}.{parameter}": style for path, _ in matching(base, module)}
    return styles
