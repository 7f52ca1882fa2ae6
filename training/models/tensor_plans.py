"""Chooses the tensor plan of a model, and checks that it fits.

It is the suite's plan, transformers' plan of layers and of experts, or our plan for a model type
without one.
"""

import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from functools import partial
from math import gcd, log
from typing import NoReturn

from torch import nn
from transformers import PreTrainedConfig, PreTrainedModel
from transformers.pytorch_utils import Conv1D

from traindyno.core.run.settings import TensorLayers
from training.errors import WorkloadError
from training.models.config_numbers import count_in
from training.models.family_plans import PLANS
from training.models.tensor_plan import COLUMNS, ROWS, TensorPlan

COLUMNS_GATHERED = "colwise_gather_output"
ROWS_SPLIT = "rowwise_split_input"
PARTIAL_GRADIENT = "replicated_with_grad_allreduce"
CHOSEN_STYLES = (COLUMNS, ROWS, COLUMNS_GATHERED, ROWS_SPLIT)
STYLES = (*CHOSEN_STYLES, PARTIAL_GRADIENT)
EXPERT_WEIGHTS = "grouped_gemm"
EXPERT_DISPATCH = "ep_dispatch_experts"
EXPERT_STYLES = (EXPERT_WEIGHTS, EXPERT_DISPATCH)
# transformers' plans with which a sweep over all families found another model than one process has,
# or an error.
UNFIT = {
    "apertus": "its activation has parameters of which each process would train a part",
    "esmc": "it divides the projections before a norm over all heads",
    "gemma4_unified_text": "the divided model computes other losses than the whole one",
    "neomme": "it divides the heads of a layer that counts all of them",
}
# The sweep found one whose divided attention reads other tokens, with fitting shapes: it views them
# by all heads.
VIEWS_ALL_HEADS = ("opt",)
OR_ELSE = "a tensor_plan in the suite, or strategy fsdp"
HEAD_COUNTS = ("num_attention_heads", "num_key_value_heads")
_ATTENTION = re.compile(r"att(n|ention)")


def plan_for(model: PreTrainedModel, chosen: TensorLayers | None = None) -> TensorPlan:
    """The plan of the layers that the suite has ``chosen``, or else the model's own plan.

    Raises WorkloadError if there is no plan, or if the suite's does not fit the model.
    """
    if chosen is not None:
        return _chosen_plan(model, chosen)
    why_not = why_no_plan(model.config)
    if why_not:
        raise WorkloadError(why_not)
    return _own_plan(model.config)


def _own_plan(config: PreTrainedConfig) -> TensorPlan:
    experts = getattr(config, "base_model_ep_plan", None) or {}
    layers: Mapping[str, str] = getattr(config, "base_model_tp_plan", None) or {}
    styles = {path: style for path, style in layers.items() if path not in experts}
    return PLANS.get(config.model_type) or TensorPlan(styles=styles, experts=experts)


def own_layers(config: PreTrainedConfig) -> str:
    """The layers of the model's own plan as a tensor_plan; empty if it has none."""
    paths: dict[str, list[str]] = {}
    for path, style in _own_plan(config).styles.items():
        paths.setdefault(style, []).append(path)
    return ", ".join(
        f"{style}: [{', '.join(paths[style])}]" for style in CHOSEN_STYLES if style in paths
    )


def why_no_plan(config: PreTrainedConfig) -> str | None:
    """Why strategy tensor can't shard a model of this configuration; None if it can."""
    kind = config.model_type
    if kind in PLANS:
        return None
    plan = _own_plan(config)
    if not plan.styles and not plan.experts:
        return (
            f"strategy tensor has no plan for model type {kind}; expected one of "
            f"{', '.join(PLANS)}, a model type with a base_model_tp_plan or base_model_ep_plan in "
            f"transformers, {OR_ELSE}"
        )
    if kind in UNFIT:
        return (
            f"strategy tensor can't shard model type {kind} by transformers' plan: {UNFIT[kind]}; "
            f"expected {OR_ELSE}"
        )
    unknown = {*plan.styles.values()} - {*STYLES} | {*plan.experts.values()} - {*EXPERT_STYLES}
    if unknown:
        return (
            f"strategy tensor can't shard model type {kind}: transformers' plan for it uses "
            f"{', '.join(sorted(unknown))}; expected a plan of "
            f"{', '.join((*STYLES, *EXPERT_STYLES))}, {OR_ELSE}"
        )
    return None


def _chosen_plan(model: PreTrainedModel, chosen: TensorLayers) -> TensorPlan:
    """The suite's layers, with what our plan knows of them.

    Norms within divided heads get their style, too.
    """
    base = model.base_model
    known_plan = _own_plan(model.config)
    linear = {
        path: layer for path, layer in base.named_modules() if isinstance(layer, nn.Linear | Conv1D)
    }
    _refuse_unless_each_names_linear_layers(model, chosen, linear)
    _refuse_torn_groups(model, chosen, known_plan, linear)
    # Only these leave a rank its own heads: the other styles give each rank the whole output.
    paths = _styled(base, chosen.styles(), COLUMNS)
    parents = {path.rpartition(".")[0] for path in paths}
    norms = _styled(base, known_plan.styles, PARTIAL_GRADIENT)
    per_rank = []
    for counted in known_plan.per_rank:
        module, _, attribute = counted.rpartition(".")
        for parent, _ in matching(base, module):
            if any(path.startswith(f"{parent}.") for path in paths):
                per_rank.append(f"{parent}.{attribute}")
    return TensorPlan(
        styles={
            **chosen.styles(),
            **{path: norms[path] for path in norms if path.rpartition(".")[0] in parents},
        },
        per_rank=tuple(per_rank),
        fused={
            path: count
            for pattern, count in known_plan.fused.items()
            for path, _ in matching(base, pattern)
            if path in paths
        },
    )


def _styled(base: nn.Module, styles: Mapping[str, str], *wanted: str) -> dict[str, str]:
    """The paths of layers of these styles, each with its own."""
    of_layers = ((pattern, style) for pattern, style in styles.items() if style in wanted)
    return {path: style for pattern, style in of_layers for path, _ in matching(base, pattern)}


def _refuse_unless_each_names_linear_layers(
    model: PreTrainedModel, chosen: TensorLayers, linear: Mapping[str, nn.Module]
) -> None:
    named: dict[str, str] = {}
    for pattern, style in chosen.named():
        paths = [path for path, _ in matching(model.base_model, pattern)]
        wrong = [path for path in paths if path not in linear]
        if wrong or not paths:
            what = f"{wrong[0]}, which is no linear layer" if wrong else "no layer"
            patterns = {re.sub(r"\b\d+\b", "*", path) for path in linear}
            nearest = get_close_matches(pattern, patterns, n=3, cutoff=0.0)
            raise WorkloadError(
                f"tensor_plan's path {pattern} names {what} of this {model.config.model_type}'s "
                "base model (its head is never divided); expected a path such as "
                f"{' or '.join(nearest)}"
            )
        for path in paths:
            if path in named:
                raise WorkloadError(
                    f"tensor_plan names {path} twice, by {named[path]} and by {style} {pattern}; "
                    "expected each layer once"
                )
            named[path] = f"{style} {pattern}"


def _refuse_torn_groups(
    model: PreTrainedModel, chosen: TensorLayers, known: TensorPlan, linear: Mapping[str, nn.Module]
) -> None:
    """Heads and features are divided by colwise layers and summed by the rowwise layer behind them,
    in one group.

    What names and sizes don't show, such as a norm over all heads, fails in the first step.
    """
    style_of = _styled(model.base_model, chosen.styles(), COLUMNS, ROWS)
    own = _styled(model.base_model, known.styles, COLUMNS, ROWS)
    beside: dict[str, list[str]] = {}
    for path in linear:
        beside.setdefault(path.rpartition(".")[0], []).append(path)

    refuse = partial(_refuse_as_another_model, model, chosen)
    order = list(linear)
    columns = list[str]()
    for path in sorted(
        style_of,
        key=lambda layer_path: (
            list(beside).index(layer_path.rpartition(".")[0]),
            style_of[layer_path] == ROWS,
        ),
    ):
        if own.get(path, style_of[path]) != style_of[path]:
            refuse(path, f"is {own[path]} in the model's own plan")
        if model.config.model_type in VIEWS_ALL_HEADS and _ATTENTION.search(path):
            refuse(path, "is of an attention that views its output by all heads")
        if style_of[path] == COLUMNS:
            columns.append(path)
            continue
        if not columns or (path not in own and order.index(path) < max(map(order.index, columns))):
            refuse(path, "gets its whole input, because no layer before it is divided")
        width = features(linear[path])[0]
        for column in columns:
            siblings = beside[column.rpartition(".")[0]]
            divided = [sibling for sibling in siblings if sibling in own] or siblings
            whole = next((sibling for sibling in divided if sibling not in style_of), None)
            if whole is not None:
                refuse(
                    whole, f"stays whole beside {column}, with which it shares heads or features"
                )
            feature_count = features(linear[column])[1] // fused_count(known, column)
            if column not in own and (
                feature_count > width or (feature_count < width and not _ATTENTION.search(column))
            ):
                counts = f"has {feature_count} outputs and {path} {width} inputs"
                refuse(column, f"{counts}: it may hold several projections")
        columns = []
    if columns:
        refuse(columns[0], "is divided, and no rowwise layer behind it sums the parts")


def _refuse_as_another_model(
    model: PreTrainedModel, chosen: TensorLayers, path: str, problem: str
) -> NoReturn:
    layers = own_layers(model.config)
    raise WorkloadError(
        f"tensor_plan {chosen} makes another model of this {model.config.model_type}: {path} "
        f"{problem}; expected colwise for all layers that share heads or features and rowwise "
        "for the one behind them, or colwise_gather_output and rowwise_split_input, which "
        "leave outputs whole" + (f"; its own plan is {{{layers}}}" if layers else "")
    )


def fused_count(plan: TensorPlan, path: str) -> int:
    """How many projections the layer of this path holds."""
    return next(
        (count for pattern, count in plan.fused.items() if _expression(pattern).fullmatch(path)), 1
    )


def check_divisible(model: PreTrainedModel, plan: TensorPlan, degree: int) -> None:
    """Raises WorkloadError unless every rank gets whole heads and equal slices."""
    counts = list(dict.fromkeys(_divided_counts(model, plan)))
    uneven = [f"{count} {name}" for name, count in counts if count % degree]
    if uneven:
        common = gcd(*(count for _, count in counts))
        possible = (number for number in range(2, common + 1) if common % number == 0)
        nearest = min(possible, key=lambda divisor: abs(log(degree / divisor)), default=None)
        expected = (
            f"a tensor_degree that divides them, such as {nearest}"
            if nearest
            else "strategy fsdp or pipeline"
        )
        raise WorkloadError(
            f"strategy tensor with degree {degree} cannot divide this {model.config.model_type} "
            f"into equal parts: it has {', '.join(uneven[:3])}; expected {expected}, or a "
            "tensor_plan of other layers"
        )


def _divided_counts(model: PreTrainedModel, plan: TensorPlan) -> Iterator[tuple[str, int]]:
    """What each rank gets an equal part of, with its number."""
    base = model.base_model
    if any(_ATTENTION.search(path) and style == COLUMNS for path, style in plan.styles.items()):
        heads = ((name, count_in(model.config, name)) for name in HEAD_COUNTS)
        yield from ((name, count) for name, count in heads if count is not None)
    for pattern, style in plan.experts.items():
        for _, experts in matching(base, pattern) if style == EXPERT_DISPATCH else ():
            count = experts.num_experts
            assert isinstance(count, int)
            yield f"experts in {pattern}", count
    for pattern, style in plan.styles.items():
        for path, layer in matching(base, pattern):
            if style in (COLUMNS, COLUMNS_GATHERED):
                yield f"output features of {pattern}", features(layer)[1] // fused_count(plan, path)
            elif style in (ROWS, ROWS_SPLIT):
                yield f"input features of {pattern}", features(layer)[0]


def _expression(pattern: str) -> re.Pattern[str]:
    return re.compile(re.escape(pattern).replace(r"\*", "[^.]+"))


def matching(module: nn.Module, pattern: str) -> Iterator[tuple[str, nn.Module]]:
    expression = _expression(pattern)
    return (
        (path, submodule)
        for path, submodule in module.named_modules()
        if expression.fullmatch(path)
    )


def features(layer: nn.Module) -> tuple[int, int]:
    if isinstance(layer, nn.Linear):
        return layer.in_features, layer.out_features
    nx = layer.nx  # transformers' Conv1D
    nf = layer.nf
    assert isinstance(nx, int)
    assert isinstance(nf, int)
    return nx, nf


def divide_head_counts(base: nn.Module, plan: TensorPlan, degree: int) -> None:
    for pattern in plan.per_rank:
        path, _, attribute = pattern.rpartition(".")
        for _, module in matching(base, path):
            setattr(module, attribute, getattr(module, attribute) // degree)
