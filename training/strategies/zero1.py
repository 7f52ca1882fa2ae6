"""A full copy of the model in every process, but each keeps the optimizer state of only its part of
the parameters.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import distributed, nn
from torch.nn.utils import vector_to_parameters
from torch.optim import Optimizer

from training.strategies import OptimizerBuilder, Setup
from training.strategies.ddp import DataParallel


class ShardedOptimizerState(DataParallel):
    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._own: set[int]

    def build_optimizer(self, build: OptimizerBuilder) -> Optimizer:
        parameters = [parameter for parameter in self._parameters if parameter.requires_grad]
        parts = divide(parameters, self.data_world_size)
        self._own = {id(parameter) for parameter in parts[self.data_rank]}
        buffers = [flatten(part) for part in parts]
        others = [
            parameter
            for rank, part in enumerate(parts)
            if rank != self.data_rank
            for parameter in part
        ]

        def _leave_to_others(*_: Any) -> None:
            for parameter in others:
                parameter.grad = None

        def _exchange(*_: Any) -> None:
            sent = [
                distributed.broadcast(buffer, src=rank, async_op=True)
                for rank, buffer in enumerate(buffers)
                if buffer is not None
            ]
            for work in sent:
                work.wait()

        optimizer = build(parameters)
        optimizer.register_step_pre_hook(_leave_to_others)
        optimizer.register_step_post_hook(_exchange)
        return optimizer

    def updates(self, parameter: nn.Parameter) -> bool:
        return id(parameter) in self._own


def divide(parameters: Iterable[nn.Parameter], part_count: int) -> list[list[nn.Parameter]]:
    """Deals whole parameters, the largest first, each to the part that has the fewest elements so
    far.
    """
    parts: list[list[nn.Parameter]] = [[] for _ in range(part_count)]
    sizes = [0] * part_count
    for parameter in sorted(parameters, key=torch.Tensor.numel, reverse=True):
        smallest = sizes.index(min(sizes))
        parts[smallest].append(parameter)
        sizes[smallest] += parameter.numel()
    return parts


def flatten(parameters: Sequence[nn.Parameter]) -> torch.Tensor | None:
    """Returns [N], a buffer with the parameters as views, so that a part is sent in one message
    without a copy.
    """
    if not parameters:
        return None
    buffer = torch.cat([parameter.detach().reshape(-1) for parameter in parameters])
    vector_to_parameters(buffer, parameters)
    return buffer
