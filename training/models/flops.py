"""Counts a model's parameters and the FLOPs of one token, on the built model."""

from copy import deepcopy

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils.flop_counter import FlopCounterMode
from transformers import PreTrainedConfig, initialization

from traindyno.core.step_log.fields import ModelSize
from traindyno.core.suite.choices import Task
from training.models.config_numbers import NOT_BUILT
from training.models.model import empty_model
from training.models.model_config import AUTO_CLASSES

FORMULA = (
    "3 x the forward pass's FLOPs (2 per multiply-add of every matrix product, attention in full, "
    "counted on one sequence) / its tokens; recomputed activations are not counted"
)
BACKWARD_AND_FORWARD = 3
# What a forward pass on fake tensors raises, if it needs a tensor's values or an operation without
# a fake form. PyTorch's own errors of fake tensors are RuntimeErrors.
NOT_COUNTED = (*NOT_BUILT, AssertionError, IndexError, ImportError)


def measure_size(task: Task, config: PreTrainedConfig, sequence_length: int) -> ModelSize:
    """Count without computing anything; no FLOPs and no formula for a model whose FLOPs can't be
    counted.
    """
    model = empty_model(task, deepcopy(config))
    model.tie_weights()
    flops = _flops_per_token(task, config, sequence_length)
    parameters = sum(parameter.numel() for parameter in model.parameters())
    return ModelSize(
        parameters=parameters, flops_per_token=flops, formula=None if flops is None else FORMULA
    )


def _flops_per_token(task: Task, config: PreTrainedConfig, sequence_length: int) -> float | None:
    try:
        with FakeTensorMode(), torch.no_grad(), initialization.no_init_weights():
            # A CPU's fused attention isn't in the counter's table, and grouped products of experts
            # have no fake form.
            model = AUTO_CLASSES[task].from_config(
                deepcopy(config),
                attn_implementation="eager",
                experts_implementation="batched_mm",
                trust_remote_code=False,
            )
            with FlopCounterMode(display=False) as counter:
                model(input_ids=torch.zeros((1, sequence_length), dtype=torch.int64))
    except NOT_COUNTED:
        return None
    forward: int = counter.get_total_flops()
    return BACKWARD_AND_FORWARD * forward / sequence_length
