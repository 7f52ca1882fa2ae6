"""Counts the size of a model, in all and in its layers, for a planner's estimate of time."""

from copy import deepcopy

from traindyno.core.planning.model_shape import ModelShape
from traindyno.core.run.workload import Workload
from training.models.config_numbers import count_in, text_of
from training.models.flops import measure_size
from training.models.model_config import model_config


def measure_shape(workload: Workload) -> ModelShape | None:
    """The size of the model; None if its FLOPs or layers can't be counted."""
    config = model_config(workload, None, model_path=None)
    length = workload.sequence_length
    text = text_of(config)
    layers = count_in(text, "num_hidden_layers")
    hidden = count_in(text, "hidden_size")
    if length is None or not layers or not hidden:
        return None
    # Attention in linear time is counted on a slow reference: on one and two periods of such a
    # model's layers.
    types = list(getattr(text, "layer_types", None) or ())
    period = (
        types.index("full_attention") + 1
        if {"linear_attention", "full_attention"} <= set(types)
        else layers
    )
    periods = layers // period
    if types != types[:period] * periods:
        period = layers
        periods = 1
    sizes = []
    for count in range(1, min(2, periods) + 1):
        shallow = deepcopy(config)
        if periods > 1:
            text_of(shallow).num_hidden_layers = count * period
            text_of(shallow).layer_types = types[: count * period]
        sizes.append(measure_size(workload.task, shallow, length))
    first = sizes[0]
    second = sizes[-1]
    if first.flops_per_token is None or second.flops_per_token is None:
        return None
    return ModelShape(
        parameters=first.parameters + (periods - 1) * (second.parameters - first.parameters),
        flops_per_token=first.flops_per_token
        + (periods - 1) * (second.flops_per_token - first.flops_per_token),
        layers=layers,
        hidden_size=hidden,
        sequence_length=length,
    )
