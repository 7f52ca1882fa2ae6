"""Checks on a model without values whether a pipeline can cut it and tensor parallelism can divide it, and whether its
parts are that model.
"""

from copy import deepcopy

import torch
from transformers import PreTrainedConfig, PreTrainedModel

from traindyno.core.errors import Problem
from traindyno.core.suite.choices import Task
from traindyno.core.suite.processes import TensorDivision
from training.errors import WorkloadError
from training.models.model import build_from_config, empty_model, skeleton
from training.models.pipeline_stages import cut
from training.models.tensor_plans import OR_ELSE, check_divisible, own_layers, plan_for
from training.models.tensor_trial import PlanFault, try_plan


def check_division(task: Task, config: PreTrainedConfig, asked: TensorDivision) -> Problem | None:
    """The first problem; None if there is none."""
    path = "matrix.strategy" if asked.layers is None else "matrix.tensor_plan"
    try:
        model = _without_values(task, config)
        plan = plan_for(model, asked.layers)
    except WorkloadError as error:
        return Problem(path=path, message=str(error))
    try:
        check_divisible(model, plan, asked.degree)
    except WorkloadError as error:
        return Problem(path="matrix.tensor_degree", message=str(error))
    try:
        try_plan(model, plan, asked.degree)
    except PlanFault as fault:
        return Problem(path=path, message=_explained(model.config, asked, fault))
    return None


def check_cut(task: Task, config: PreTrainedConfig, stage_count: int) -> Problem | None:
    own = deepcopy(config)
    own.use_cache = False  # as in a run
    try:
        cut(skeleton(task, own), stage_count, task, None)
    except WorkloadError as error:
        return Problem(path="matrix.strategy", message=str(error))
    return None


def _without_values(task: Task, config: PreTrainedConfig) -> PreTrainedModel:
    try:
        with torch.device("meta"):
            return build_from_config(task, config)
    except WorkloadError:  # a few models compute with values while they are built
        return empty_model(task, config)


def _explained(config: PreTrainedConfig, asked: TensorDivision, fault: PlanFault) -> str:
    if asked.layers is None:
        return f"strategy tensor can't shard model type {config.model_type} by its plan: {fault}; expected {OR_ELSE}"
    own = own_layers(config)
    return (
        f"with tensor_plan {asked.layers}, {asked.degree} processes compute another model than this"
        f" {config.model_type}: {fault}; expected colwise for all layers that share heads or features and rowwise for"
        " the one behind them, or colwise_gather_output and rowwise_split_input, which leave outputs whole"
        + (f"; its own plan is {{{own}}}" if own else "")
    )
