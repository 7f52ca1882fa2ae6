"""Checks on a model without values whether tensor parallelism or a pipeline can divide it."""

from copy import deepcopy

import torch
from transformers import PreTrainedConfig, PreTrainedModel

from traindyno.core.errors import Problem
from traindyno.core.run.processes import TensorDivision
from traindyno.core.suite.choices import Task
from training.errors import WorkloadError
from training.models.model import build_from_config, empty_model, skeleton
from training.models.pipeline_stages import cut
from training.models.tensor_plans import check_divisible, plan_for


def check_division(task: Task, config: PreTrainedConfig, asked: TensorDivision) -> Problem | None:
    """The first problem; None if there is none."""
    try:
        model = _without_values(task, config)
        plan = plan_for(model, asked.layers)
    except WorkloadError as error:
        path = "matrix.strategy" if asked.layers is None else "matrix.tensor_plan"
        return Problem(path=path, message=str(error))
    try:
        check_divisible(model, plan, asked.degree)
    except WorkloadError as error:
        return Problem(path="matrix.tensor_degree", message=str(error))
    return None


def check_cut(task: Task, config: PreTrainedConfig, stage_count: int) -> Problem | None:
    config_copy = deepcopy(config)
    config_copy.use_cache = False  # as in a run
    try:
        cut(skeleton(task, config_copy), stage_count, task, None)
    except WorkloadError as error:
        return Problem(path="matrix.strategy", message=str(error))
    return None


def _without_values(task: Task, config: PreTrainedConfig) -> PreTrainedModel:
    try:
        with torch.device("meta"):
            return build_from_config(task, config)
    except WorkloadError:  # a few models compute with values while they are built
        return empty_model(task, config)
