"""Turns GPT-2's Conv1D layers into linear layers, and orders the rows of fused projections, such as ModernBERT's, so
that whole heads can be sharded; and back again for saving.

A linear layer's weight is [O, I], a Conv1D's is [I, O]; both have a bias [O].
"""

from collections.abc import Iterator, Sequence

import torch
from torch import nn
from transformers.pytorch_utils import Conv1D

from training.models.blueprint import Readable
from training.models.tensor_plans import TensorPlan, fused_count, matching

RowOrder = torch.Tensor | None


class ConvertedLayers:
    """Replaces every Conv1D that the plan names by a linear layer on the meta device.

    ``convert`` gives a layer's tensor as the sharded model keeps it.
    """

    def __init__(self, base: nn.Module, plan: TensorPlan, degree: int) -> None:
        self._row_orders: dict[str, RowOrder] = {}
        self._transposed: set[str] = set()
        for path, layer in list(_convertible(base, plan)):
            if isinstance(layer, Conv1D):
                base.set_submodule(path, nn.Linear(layer.nx, layer.nf, device="meta", dtype=layer.weight.dtype))
                self._transposed.add(path)
            rows = layer.nf if isinstance(layer, Conv1D) else layer.out_features
            self._row_orders[path] = _whole_heads_per_rank(rows, fused_count(plan, path), degree)

    def convert(self, name: str, whole: Readable, base_prefix: str) -> Readable:
        """The inverse of ``restore``."""
        path, _, kind = name.removeprefix(base_prefix).rpartition(".")
        if path not in self._row_orders:
            return whole
        rows = whole[...].t() if kind == "weight" and path in self._transposed else whole[...]
        order = self._row_orders[path]
        return rows if order is None else rows[order]

    def restore(self, name: str, tensor: torch.Tensor, base_prefix: str) -> torch.Tensor:
        """Returns the whole tensor of this name as transformers keeps it: of ``tensor`` [O, I] or [O] of a converted
        layer, [I, O] for a Conv1D's weight, else [O, I] or [O]. Those of other layers stay as they are.
        """
        path, _, kind = name.removeprefix(base_prefix).rpartition(".")
        if path not in self._row_orders:
            return tensor
        rows = _original_rows(tensor, self._row_orders[path])
        return rows.t() if kind == "weight" and path in self._transposed else rows


def is_converted(base: nn.Module, plan: TensorPlan) -> bool:
    """Whether the plan makes the model hold a tensor in another form than transformers does."""
    return any(True for _ in _convertible(base, plan))


def _convertible(base: nn.Module, plan: TensorPlan) -> Iterator[tuple[str, Conv1D | nn.Linear]]:
    for pattern in plan.styles:
        for path, layer in matching(base, pattern):
            if isinstance(layer, Conv1D) or (isinstance(layer, nn.Linear) and fused_count(plan, path) > 1):
                yield path, layer


def _whole_heads_per_rank(feature_count: int, projection_count: int, degree: int) -> RowOrder:
    """Returns a row order [O]: rank r's slice holds its heads of the query, then of the key, then of the value."""
    if projection_count == 1:
        return None
    by_projection_and_rank: Sequence[Sequence[torch.Tensor]] = [
        projection.chunk(degree) for projection in torch.arange(feature_count).chunk(projection_count)
    ]
    return torch.cat([parts[rank] for rank in range(degree) for parts in by_projection_and_rank])


def _original_rows(rows: torch.Tensor, order: RowOrder) -> torch.Tensor:
    """Returns the rows, [O, I] or [O], in the order that they had before ``order`` [O]."""
    return rows if order is None else rows[order.argsort()]
