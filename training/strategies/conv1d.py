"""Turns GPT-2's Conv1D layers into linear layers that can be sharded by whole heads, and back again for saving.

A linear layer's weight is [O, I], a Conv1D's is [I, O]; both have a bias [O].
"""

from collections.abc import Sequence

import torch
from torch import nn
from transformers.pytorch_utils import Conv1D

from training.models.blueprint import Readable
from training.models.tensor_plans import TensorPlan, matching

RowOrder = torch.Tensor | None


class ConvertedLayers:
    """Replaces every Conv1D that the plan names by a linear layer on the meta device.

    ``convert`` gives a Conv1D's tensor as its linear layer keeps it.
    """

    def __init__(self, base: nn.Module, plan: TensorPlan, degree: int) -> None:
        self._row_orders: dict[str, RowOrder] = {}
        for pattern in plan.styles:
            for path, layer in list(matching(base, pattern)):
                if isinstance(layer, Conv1D):
                    order = _whole_heads_per_rank(layer.nf, plan.fused.get(pattern, 1), degree)
                    base.set_submodule(path, nn.Linear(layer.nx, layer.nf, device="meta", dtype=layer.weight.dtype))
                    self._row_orders[path] = order

    @property
    def is_used(self) -> bool:
        return bool(self._row_orders)

    def convert(self, name: str, whole: Readable, base_prefix: str) -> Readable:
        """The inverse of ``restore``."""
        path, _, kind = name.removeprefix(base_prefix).rpartition(".")
        if path not in self._row_orders:
            return whole
        rows = whole[...].t() if kind == "weight" else whole[...]
        order = self._row_orders[path]
        return rows if order is None else rows[order]

    def restore(self, name: str, tensor: torch.Tensor, base_prefix: str) -> torch.Tensor:
        """Returns the whole tensor of this name as Conv1D keeps it: of ``tensor`` [O, I] or [O] of a converted layer,
        [I, O] or [O]. Those of other layers stay as they are.
        """
        path, _, kind = name.removeprefix(base_prefix).rpartition(".")
        if path not in self._row_orders:
            return tensor
        rows = _original_rows(tensor, self._row_orders[path])
        return rows.t() if kind == "weight" else rows


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
