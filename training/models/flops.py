"""The size of a model, counted on the built model: its parameters and the FLOPs of one token."""

from copy import deepcopy
from functools import partial
from typing import Any

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils.flop_counter import FlopCounterMode
from transformers import PreTrainedConfig, PreTrainedModel, initialization

from traindyno.core.step_log.fields import ModelSize
from traindyno.core.suite.choices import Task
from training.models.adapter import inject
from training.models.blueprint import without_values
from training.models.config_numbers import NOT_BUILT
from training.models.model import empty_model
from training.models.model_config import AUTO_CLASSES

FORMULA = (
    "3 x the forward pass's FLOPs (2 per multiply-add of every matrix product, attention in full, "
    "counted on one sequence) / its tokens; recomputed activations are not counted"
)
BACKWARD_AND_FORWARD = 3
FORMULA_OF_ADAPTER = (
    "the FLOPs of forward and backward pass (2 per multiply-add of every matrix product, attention "
    "in full, counted on one sequence) / its tokens; frozen weights have no gradient of their own; "
    "recomputed activations are not counted"
)
# The errors of a forward pass on fake tensors that needs a tensor's values, or an operation without
# a fake form. PyTorch's own errors of fake tensors are RuntimeErrors.
NOT_COUNTED = (*NOT_BUILT, AssertionError, IndexError, ImportError)


def measure_size(
    task: Task, config: PreTrainedConfig, sequence_length: int, adapter: Any = None
) -> ModelSize:
    """Count without computing anything; no FLOPs and no formula for a model whose FLOPs can't be
    counted.

    ``adapter`` is peft's configuration.
    """
    model = empty_model(task, deepcopy(config))
    model.tie_weights()
    if adapter is not None:
        inject(model, deepcopy(adapter))
    flops = _flops_per_token(task, config, sequence_length, adapter)
    formula = FORMULA if adapter is None else FORMULA_OF_ADAPTER
    trained = (parameter.numel() for parameter in model.parameters() if parameter.requires_grad)
    return ModelSize(
        parameters=sum(parameter.numel() for parameter in model.parameters()),
        flops_per_token=flops,
        formula=None if flops is None else formula,
        trained=None if adapter is None else sum(trained),
    )


def _flops_per_token(
    task: Task, config: PreTrainedConfig, sequence_length: int, adapter: Any
) -> float | None:
    forward = _forward_flops
    passes = BACKWARD_AND_FORWARD
    if adapter is not None:
        forward = partial(_adapted_flops, adapter)
        passes = 1
    try:
        counted = forward(task, config, sequence_length)
    except NOT_COUNTED:
        return None
    return passes * counted / sequence_length


def _forward_flops(task: Task, config: PreTrainedConfig, sequence_length: int) -> int:
    with FakeTensorMode(), torch.no_grad(), initialization.no_init_weights():
        model = _countable(task, config)
        with FlopCounterMode(display=False) as counter:
            model(input_ids=torch.zeros((1, sequence_length), dtype=torch.int64))
    total: int = counter.get_total_flops()
    return total


def _adapted_flops(adapter: Any, task: Task, config: PreTrainedConfig, sequence_length: int) -> int:
    """The FLOPs of the forward and the backward pass of a token of a model with an adapter.

    They are counted on the meta device, because peft moves no fake tensors.
    """
    with without_values():
        model = _countable(task, config)
    model.tie_weights()
    nn.Module.to(inject(model, deepcopy(adapter)), "meta").train()
    tokens = torch.zeros((1, sequence_length), dtype=torch.int64, device="meta")
    with FlopCounterMode(display=False) as counter:
        model(input_ids=tokens).logits.sum().backward()
    total: int = counter.get_total_flops()
    return total


def _countable(task: Task, config: PreTrainedConfig) -> PreTrainedModel:
    """A CPU's fused attention isn't in the counter's table, and grouped products of experts have no
    fake form.
    """
    model: PreTrainedModel = AUTO_CLASSES[task].from_config(
        deepcopy(config),
        attn_implementation="eager",
        experts_implementation="batched_mm",
        trust_remote_code=False,
    )
    return model
