"""Counts a model's parameters and the FLOPs of one token, on the built model."""

from copy import deepcopy
from dataclasses import dataclass

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils.flop_counter import FlopCounterMode
from transformers import PreTrainedConfig

from traindyno.core.suite.choices import Task
from training.models.model import AUTO_CLASSES

FORMULA = (
    "3 x the forward pass's FLOPs (2 per multiply-add of every matrix product, attention in full, counted on one "
    "sequence) / its tokens; recomputed activations are not counted"
)
BACKWARD_AND_FORWARD = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSize:
    parameters: int
    flops_per_token: float


def measure_size(task: Task, config: PreTrainedConfig, sequence_length: int) -> ModelSize:
    """Count with fake tensors, without computing anything."""
    with FakeTensorMode(), torch.no_grad():
        # PyTorch's fused attention on a CPU is not in the counter's table.
        model = AUTO_CLASSES[task].from_config(deepcopy(config), attn_implementation="eager")
        with FlopCounterMode(display=False) as counter:
            model(input_ids=torch.zeros((1, sequence_length), dtype=torch.int64))
    return ModelSize(
        parameters=sum(parameter.numel() for parameter in model.parameters()),
        flops_per_token=BACKWARD_AND_FORWARD * counter.get_total_flops() / sequence_length,
    )
