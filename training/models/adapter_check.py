"""Checks on a model without values whether an adapter can be added so that all of it is trained."""

from collections.abc import Iterator

import torch
from transformers import PreTrainedConfig

from traindyno.core.errors import Problem
from traindyno.core.run.settings import Adapter
from traindyno.core.suite.choices import Task
from training.errors import WorkloadError
from training.models.adapter import inject, lora_config, lora_layers
from training.models.config_numbers import NOT_BUILT
from training.models.model import empty_model

PATH = "matrix.adapter"
TOKENS = 8
SHOWN = 3


def check_adapter(task: Task, config: PreTrainedConfig, adapter: Adapter) -> Iterator[Problem]:
    try:
        model = empty_model(task, config)
        model.tie_weights()
        inject(model, lora_config(model, adapter, task))
    except WorkloadError as error:
        yield Problem(path=PATH, message=str(error))
        return
    without = untrained(model)
    if without:
        shown = ", ".join(without[:SHOWN]) + (", …" if len(without) > SHOWN else "")
        message = (
            f"{len(without)} layers of this {config.model_type} get no gradient in their adapter, "
            f"such as {shown}: the model reads their weights itself, or no text passes them; "
            "expected adapter.targets without them"
        )
        yield Problem(path=PATH, message=message)


def untrained(model: torch.nn.Module) -> list[str]:
    """The layers whose adapter gets no gradient from a row of tokens.

    There are none where a model without values can't be run, such as a mixture, whose experts are
    chosen by values.
    """
    layers = dict(lora_layers(model))
    rows = torch.ones(1, TOKENS, dtype=torch.int64, device="meta")
    try:
        model.to("meta").train()(input_ids=rows).logits.sum().backward()
    except (*NOT_BUILT, AssertionError, IndexError, NotImplementedError):
        return []
    return [
        path
        for path, layer in layers.items()
        if all(matrix.weight.grad is None for matrix in layer.lora_B.values())
    ]
