"""The layers of each model that tensor parallelism shards, and how: our plans for models without a plan in
transformers.

Paths are relative to the base model (``model.base_model``), ``*`` stands for one name, as in transformers' own plans.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from torch import nn
from transformers import PreTrainedConfig, PreTrainedModel

from training.errors import WorkloadError

COLUMNS = "colwise"
ROWS = "rowwise"
COLUMNS_GATHERED = "colwise_gather_output"
ROWS_SPLIT = "rowwise_split_input"
PARTIAL_GRADIENT = "replicated_with_grad_allreduce"
STYLES = (COLUMNS, ROWS, COLUMNS_GATHERED, ROWS_SPLIT, PARTIAL_GRADIENT)


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorPlan:
    """``per_rank`` are attributes that count heads or their features. ``fused`` counts the projections in one layer."""

    styles: Mapping[str, str]
    per_rank: tuple[str, ...] = ()
    fused: Mapping[str, int] = field(default_factory=dict)


GPT2 = TensorPlan(
    styles={
        "h.*.attn.c_attn": COLUMNS,
        "h.*.attn.c_proj": ROWS,
        "h.*.mlp.c_fc": COLUMNS,
        "h.*.mlp.c_proj": ROWS,
    },
    per_rank=("h.*.attn.num_heads", "h.*.attn.split_size"),
    fused={"h.*.attn.c_attn": 3},
)
GPTJ = TensorPlan(
    styles={
        "h.*.attn.q_proj": COLUMNS,
        "h.*.attn.k_proj": COLUMNS,
        "h.*.attn.v_proj": COLUMNS,
        "h.*.attn.out_proj": ROWS,
        "h.*.mlp.fc_in": COLUMNS,
        "h.*.mlp.fc_out": ROWS,
    },
    per_rank=("h.*.attn.num_attention_heads",),
)
BERT = TensorPlan(
    styles={
        "encoder.layer.*.attention.self.query": COLUMNS,
        "encoder.layer.*.attention.self.key": COLUMNS,
        "encoder.layer.*.attention.self.value": COLUMNS,
        "encoder.layer.*.attention.output.dense": ROWS,
        "encoder.layer.*.intermediate.dense": COLUMNS,
        "encoder.layer.*.output.dense": ROWS,
    },
    per_rank=(
        "encoder.layer.*.attention.self.num_attention_heads",
        "encoder.layer.*.attention.self.all_head_size",
    ),
)
_ALBERT_LAYER = "encoder.albert_layer_groups.*.albert_layers.*"
ALBERT = TensorPlan(
    styles={
        f"{_ALBERT_LAYER}.attention.query": COLUMNS,
        f"{_ALBERT_LAYER}.attention.key": COLUMNS,
        f"{_ALBERT_LAYER}.attention.value": COLUMNS,
        f"{_ALBERT_LAYER}.attention.dense": ROWS,
        f"{_ALBERT_LAYER}.ffn": COLUMNS,
        f"{_ALBERT_LAYER}.ffn_output": ROWS,
    },
    per_rank=(f"{_ALBERT_LAYER}.attention.num_attention_heads", f"{_ALBERT_LAYER}.attention.all_head_size"),
)
PLANS: Mapping[str, TensorPlan] = {"gpt2": GPT2, "gptj": GPTJ, "bert": BERT, "albert": ALBERT}


def plan_for(model: PreTrainedModel) -> TensorPlan:
    """Raises WorkloadError if there is none."""
    why_not = why_no_plan(model.config)
    if why_not:
        raise WorkloadError(why_not)
    own = PLANS.get(model.config.model_type)
    return own or TensorPlan(styles=model.config.base_model_tp_plan or {})


def why_no_plan(config: PreTrainedConfig) -> str | None:
    """Why strategy tensor can't shard a model of this configuration; None if it can."""
    kind = config.model_type
    if kind in PLANS:
        return None
    styles = getattr(config, "base_model_tp_plan", None)
    if not styles:
        return (
            f"strategy tensor has no plan for model type {kind}; expected one of {', '.join(PLANS)},"
            " or a model type with a base_model_tp_plan in transformers"
        )
    unknown = sorted(set(styles.values()) - set(STYLES))
    if unknown:
        return (
            f"strategy tensor can't shard model type {kind}: transformers' plan for it uses {', '.join(unknown)};"
            f" expected a plan of {', '.join(STYLES)}"
        )
    return None


def check_divisible(model: PreTrainedModel, plan: TensorPlan, degree: int) -> None:
    """Raises WorkloadError unless every rank gets whole heads and equal slices."""
    config = model.config
    counts = {
        name: getattr(config, name)
        for name in ("num_attention_heads", "num_key_value_heads")
        if getattr(config, name, None) is not None
    }
    for pattern, style in plan.styles.items():
        for path, layer in matching(model.base_model, pattern):
            match style:
                case "colwise" | "colwise_gather_output":
                    counts[f"{path}'s output features"] = _features(layer)[1]
                case "rowwise" | "rowwise_split_input":
                    counts[f"{path}'s input features"] = _features(layer)[0]
    uneven = [f"{count} {name}" for name, count in counts.items() if count % degree]
    if uneven:
        raise WorkloadError(
            f"strategy tensor with degree {degree} cannot divide this {config.model_type} into equal parts: it has "
            f"{', '.join(uneven[:3])}; expected a tensor_degree that divides them"
        )


def matching(module: nn.Module, pattern: str) -> Iterator[tuple[str, nn.Module]]:
    expression = re.compile(re.escape(pattern).replace(r"\*", "[^.]+"))
    return ((path, found) for path, found in module.named_modules() if expression.fullmatch(path))


def _features(layer: nn.Module) -> tuple[int, int]:
    if isinstance(layer, nn.Linear):
        return layer.in_features, layer.out_features
    nx, nf = layer.nx, layer.nf  # transformers' Conv1D
    assert isinstance(nx, int)
    assert isinstance(nf, int)
    return nx, nf
