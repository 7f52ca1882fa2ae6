"""Checks on a model without values whether a pipeline can cut it and tensor parallelism can divide it, and whether its
parts are that model.

To try a tensor plan, the base model is called with a few tokens, then again as a process of a tensor group has it.
There each layer must get what it got before, or its part of that, and gives what it gave before, or its part. This
needs neither weights nor processes. Tensors have any shape [...] unless one is named.
"""

from collections.abc import Iterable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from transformers import PreTrainedConfig, PreTrainedModel
from transformers.pytorch_utils import Conv1D

from traindyno.core.errors import Problem
from traindyno.core.suite.choices import Task
from traindyno.core.suite.processes import TensorDivision
from training.errors import WorkloadError
from training.models.config_numbers import NOT_BUILT
from training.models.model import build_from_config, empty_model, skeleton
from training.models.pipeline_stages import cut
from training.models.tensor_plans import (
    COLUMNS,
    OR_ELSE,
    PARTIAL_GRADIENT,
    ROWS,
    TensorPlan,
    check_divisible,
    divide_head_counts,
    features,
    fused_count,
    matching,
    own_layers,
    plan_for,
)

ROW_COUNT, TOKEN_COUNT = 2, 4
# What a model raises whose parts get something else than before.
NOT_CALLED = (*NOT_BUILT, AssertionError, IndexError, StopIteration)
TOLERANCE = 1e-3  # both calls compute the same numbers, up to rounding
ANY_VALUE = 0.5
MOST_CHARACTERS = 200


class PlanFault(Exception):
    """``path``: the first layer that gets something else; empty if none does and the model fails or differs."""

    def __init__(self, found: str, path: str = "") -> None:
        super().__init__(f"{path} {found}".lstrip())
        self.path = path


def try_plan(model: PreTrainedModel, plan: TensorPlan, degree: int) -> None:
    """Raises PlanFault. A model that can't be called with tokens alone is not tried.

    ``model`` is on the meta device, and can't be used afterwards.
    """
    base = model.base_model.eval()
    _fill(base)
    layers = {path: _Layer(path, module) for path, module in _lowest(base)}
    try:
        whole = _call(base)
    except NOT_CALLED:
        return
    styles = {path: style for pattern, style in plan.styles.items() for path, _ in matching(base, pattern)}
    for path in styles:
        if path in layers and not layers[path].calls:
            raise PlanFault("is not called by the model", path)
    divide_head_counts(base, plan, degree)
    for path, layer in layers.items():
        layer.divide(styles.get(path), fused_count(plan, path), degree)
    try:
        is_equal = _are_equal([_call(base)], [whole])
    except NOT_CALLED as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:MOST_CHARACTERS]
        raise PlanFault(f"the model fails ({reason})") from error
    if not is_equal:
        raise PlanFault("the model's output is another one")


@dataclass(frozen=True, slots=True)
class _Call:
    given: Sequence[torch.Tensor]
    output: Any


class _Layer:
    """Notes the calls of a layer in the whole model. Once it is divided, it compares them with those of a process."""

    def __init__(self, path: str, module: nn.Module) -> None:
        self.calls: list[_Call] = []
        self._path = path
        self._module: Any = module
        self._own = module.forward
        self._is_linear = type(module).forward in (nn.Linear.forward, Conv1D.forward)
        self._is_table = type(module).forward is nn.Embedding.forward
        self._is_costly = self._is_linear or self._is_table or _holds_experts(module)
        self._module.forward = self._note

    def _note(self, *args: Any, **options: Any) -> Any:
        given = [each.clone() for each in _tensors(args, options)]
        output = self._made_up(given[0]) if self._is_costly else self._own(*args, **options)
        self.calls.append(_Call(given, _copy(output)))
        return output

    def _made_up(self, given: torch.Tensor) -> torch.Tensor:
        """Experts give hidden states like those that they get."""
        if self._is_table:
            return torch.randn(*given.shape, self._module.embedding_dim)
        inputs, outputs = features(self._module) if self._is_linear else (given.shape[-1],) * 2
        assert given.shape[-1] == inputs
        return torch.randn(*given.shape[:-1], outputs)

    def divide(self, style: str | None, projections: int, degree: int) -> None:
        self._style, self._projections, self._degree = style, projections, degree
        self._left = iter(self.calls)
        self._module.forward = self._own if style == PARTIAL_GRADIENT else self._compare

    def _compare(self, *args: Any, **options: Any) -> Any:
        whole, given = next(self._left), _tensors(args, options)
        part = [_part(whole.given[0], self._degree), *whole.given[1:]]
        if not _are_equal(given, part if self._style == ROWS else whole.given):
            raise PlanFault(_difference(given, whole.given, part), self._path)
        if self._style == COLUMNS:
            return _part(whole.output, self._degree, self._projections)
        return _copy(whole.output)


def _difference(given: Sequence[torch.Tensor], whole: Sequence[torch.Tensor], part: Sequence[torch.Tensor]) -> str:
    if _are_equal(given, whole):
        return "gets its whole input, because no layer before it is divided"
    if _are_equal(given, part):
        return "gets a part of its input, because a layer before it is divided"
    return "gets another input than in the whole model"


def _part(whole: torch.Tensor, degree: int, projections: int = 1) -> torch.Tensor:
    """That of the last process, which is no beginning of the whole."""
    return torch.cat([each.chunk(degree, -1)[-1] for each in whole.chunk(projections, -1)], -1)


def _fill(base: nn.Module) -> None:
    """Gives parameters and buffers some value: one number each, seen as a tensor of their shape."""
    for module in base.modules():
        for name, parameter in module._parameters.items():
            if parameter is not None:
                module._parameters[name] = nn.Parameter(_some_value(parameter), requires_grad=False)
        for name, buffer in module._buffers.items():
            if buffer is not None and buffer.is_meta:
                module._buffers[name] = _some_value(buffer)


def _some_value(like: torch.Tensor) -> torch.Tensor:
    value = ANY_VALUE if like.is_floating_point() else 0
    return torch.full((), value, dtype=like.dtype).expand(like.shape)


def _lowest(base: nn.Module) -> Iterator[tuple[str, nn.Module]]:
    """The modules whose parameters are all their own, none of a module below them."""
    for path, module in base.named_modules():
        own = len(list(module.parameters(recurse=False)))
        if own and own == len(list(module.parameters())):
            yield path, module


def _call(base: Any) -> torch.Tensor:
    """Returns the hidden states, [ROW_COUNT, TOKEN_COUNT, D]."""
    tokens = torch.ones((ROW_COUNT, TOKEN_COUNT), dtype=torch.int64)
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        hidden: torch.Tensor = base(input_ids=tokens, attention_mask=torch.ones_like(tokens))[0]
    return hidden


def _holds_experts(module: nn.Module) -> bool:
    return hasattr(module, "num_experts") and any(each.dim() > 2 for each in module.parameters())


def _tensors(args: Iterable[Any], options: dict[str, Any]) -> list[torch.Tensor]:
    return [each for each in (*args, *options.values()) if isinstance(each, torch.Tensor)]


def _copy(output: Any) -> Any:
    """Clone a tensor; a tuple stays as it is."""
    return output.clone() if isinstance(output, torch.Tensor) else output


def _are_equal(some: Sequence[torch.Tensor], others: Sequence[torch.Tensor]) -> bool:
    if [each.shape for each in some] != [each.shape for each in others]:
        return False
    return all(
        torch.allclose(one.float(), other.float(), rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True)
        for one, other in zip(some, others, strict=True)
    )


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
