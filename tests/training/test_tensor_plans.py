"""A suite's tensor_plan that does not divide its model into parts of that model is refused before
anything starts.
"""

from typing import Any

import pytest

from tests.training.small_models import small_values
from tests.training.strategy_cases import GPT, LLAMA, Case
from tests.training.strategy_runs import train_cases
from traindyno.core.run.processes import TensorDivision
from traindyno.core.run.settings import TensorLayers
from traindyno.core.run.workload import Model, Workload
from traindyno.core.suite.choices import Strategy, Task
from training.models.model_check import check_model

QKV = tuple(f"layers.*.self_attn.{name}_proj" for name in "qkv")
OUTPUT = "layers.*.self_attn.o_proj"
GATES = ("layers.*.mlp.gate_proj", "layers.*.mlp.up_proj")
FUSED = ("layers.*.mlp.gate_up_proj",)
DOWN = "layers.*.mlp.down_proj"
MODELS: dict[str, dict[str, Any]] = {
    "gpt2": {"model_type": "gpt2", **GPT},
    "llama": {"model_type": "llama", **LLAMA},
    "llama with one key-value head": {"model_type": "llama", **LLAMA, "num_key_value_heads": 1},
    "qwen3": {"model_type": "qwen3", **LLAMA},
    **{
        kind: {"model_type": kind, **small_values(kind)}
        for kind in ("apertus", "bloom", "mixtral", "olmo2", "opt", "phi3")
    },
}
GOOD: list[tuple[str, dict[str, tuple[str, ...]]]] = [
    ("llama", {"colwise": (*QKV, *GATES), "rowwise": (OUTPUT, DOWN)}),
    ("llama", {"colwise": GATES, "rowwise": (DOWN,)}),
    (
        "llama",
        {
            "colwise": ("layers.1.mlp.gate_proj", "layers.1.mlp.up_proj"),
            "rowwise": ("layers.1.mlp.down_proj",),
        },
    ),
    ("llama", {"colwise_gather_output": (*QKV, *GATES), "rowwise_split_input": (OUTPUT, DOWN)}),
    ("llama", {"colwise_gather_output": (GATES[1],)}),
    ("llama with one key-value head", {"colwise_gather_output": QKV}),
    ("qwen3", {"colwise": QKV, "rowwise": (OUTPUT,)}),
    ("olmo2", {"colwise_gather_output": QKV, "rowwise_split_input": (OUTPUT,)}),
    ("mixtral", {"colwise": QKV, "rowwise": (OUTPUT,)}),
    (
        "gpt2",
        {
            "colwise": ("h.*.attn.c_attn", "h.*.mlp.c_fc"),
            "rowwise": ("h.*.attn.c_proj", "h.*.mlp.c_proj"),
        },
    ),
    ("gpt2", {"colwise": ("h.2.mlp.c_fc",), "rowwise": ("h.2.mlp.c_proj",)}),
    ("opt", {"colwise": ("decoder.layers.*.fc1",), "rowwise": ("decoder.layers.*.fc2",)}),
    ("bloom", {"colwise": ("h.*.mlp.dense_h_to_4h",), "rowwise": ("h.*.mlp.dense_4h_to_h",)}),
    ("phi3", {"colwise_gather_output": FUSED, "rowwise_split_input": (DOWN,)}),
]
OPT_ATTENTION = {
    "colwise": tuple(f"decoder.layers.*.self_attn.{name}_proj" for name in "qkv"),
    "rowwise": ("decoder.layers.*.self_attn.out_proj",),
}
REFUSED: list[tuple[str, dict[str, tuple[str, ...]], str]] = [
    (
        "llama",
        {"colwise": GATES},
        "layers.0.mlp.gate_proj is divided, and no rowwise layer behind it sums the parts",
    ),
    (
        "llama",
        {"rowwise": (DOWN,)},
        "layers.0.mlp.down_proj gets its whole input, because no layer before it is",
    ),
    (
        "llama",
        {"colwise": GATES[:1], "rowwise": (DOWN,)},
        "layers.0.mlp.up_proj stays whole beside layers.0.mlp.gate",
    ),
    ("llama", {"colwise": (DOWN,)}, "layers.0.mlp.down_proj is rowwise in the model's own plan"),
    # The shapes fit.
    (
        "llama",
        {"colwise": QKV[:1], "rowwise": (OUTPUT,)},
        "layers.0.self_attn.k_proj stays whole beside layers.0.self",
    ),
    (
        "opt",
        OPT_ATTENTION,
        "decoder.layers.0.self_attn.q_proj is of an attention that views its output by all heads",
    ),
    (
        "bloom",
        {"colwise": ("h.*.mlp.dense_4h_to_h",), "rowwise": ("h.*.mlp.dense_h_to_4h",)},
        "h.0.mlp.dense_h_to_4h",
    ),
    (
        "phi3",
        {"colwise": FUSED, "rowwise": (DOWN,)},
        "layers.0.mlp.gate_up_proj has 128 outputs and layers.0.mlp.down",
    ),
]


def problems(model: str, layers: dict[str, tuple[str, ...]] | None, degree: int = 2) -> list[str]:
    """The problems of a plan; without layers, of the model's own plan."""
    workload = Workload(
        task=Task.CAUSAL_LM, examples=1, model=Model(config=MODELS[model]), sequence_length=16
    )
    division = TensorDivision(degree=degree, layers=TensorLayers(**layers) if layers else None)
    return [str(problem) for problem in check_model(workload, [division], model_path=None)]


@pytest.mark.parametrize(("model", "layers"), GOOD)
def test_a_plan_dividing_the_model_is_accepted(
    model: str, layers: dict[str, tuple[str, ...]]
) -> None:
    assert problems(model, layers) == []


@pytest.mark.parametrize(("model", "layers", "said"), REFUSED)
def test_a_plan_tearing_heads_or_features_apart_is_refused(
    model: str, layers: dict[str, tuple[str, ...]], said: str
) -> None:
    (problem,) = problems(model, layers)
    asked = (
        f"tensor_plan {TensorLayers(**layers)} makes another model of this "
        f"{MODELS[model]['model_type']}: "
    )
    assert problem.startswith(f"matrix.tensor_plan: {asked}{said}")
    assert (
        "; expected colwise for all layers that share heads or features and rowwise for the "
        "one behind"
    ) in problem


def test_the_models_own_plan_may_not_fit_it() -> None:
    (problem,) = problems("apertus", None)
    assert (
        "can't shard model type apertus by transformers' plan: its activation has parameters"
        in problem
    )


@pytest.mark.parametrize(
    ("layers", "said"),
    [
        (
            {"colwise": ("layers.*.mlp.upproj",)},
            "tensor_plan's path layers.*.mlp.upproj names no layer of this llama's",
        ),
        (
            {"colwise": ("model.layers.*.mlp.up_proj",)},
            "expected a path such as layers.*.mlp.up_proj",
        ),
        ({"colwise": ("embed_tokens",)}, "embed_tokens, which is no linear layer"),
        (
            {"colwise": ("lm_head",)},
            "lm_head names no layer of this llama's base model (its head is never divided)",
        ),
        (
            {"rowwise": ("layers.*.input_layernorm",)},
            "layers.0.input_layernorm, which is no linear layer",
        ),
        (
            {"colwise": GATES, "rowwise": ("layers.*.mlp.*_proj",)},
            "names layers.0.mlp.gate_proj twice",
        ),
        (
            {"colwise": (*GATES, "layers.3.mlp.up_proj"), "rowwise": (DOWN,)},
            "tensor_plan names layers.3.mlp.up_proj twice, by colwise layers.*.mlp.up_proj and "
            "by colwise layers.3.mlp.up_proj; expected each layer once",
        ),
        (
            {"colwise": GATES[:1], "rowwise": GATES[:1]},
            "twice, by colwise layers.*.mlp.gate_proj and by rowwise layers",
        ),
    ],
)
def test_a_path_without_a_layer_or_to_a_divided_one_is_refused(
    layers: dict[str, tuple[str, ...]], said: str
) -> None:
    (problem,) = problems("llama", layers)
    assert problem.startswith("matrix.tensor_plan: tensor_plan")
    assert said in problem


@pytest.mark.parametrize(
    ("model", "degree", "layers", "said"),
    [
        (
            "llama",
            4,
            {"colwise": QKV, "rowwise": (OUTPUT,)},
            "2 num_key_value_heads; expected a tensor_degree that",
        ),
        (
            "llama",
            3,
            {"colwise": GATES, "rowwise": (DOWN,)},
            "64 output features of layers.*.mlp.gate_proj",
        ),
        (
            "bloom",
            3,
            {"colwise_gather_output": ("h.*.mlp.dense_h_to_4h",)},
            "such as 4, or a tensor_plan of other layers",
        ),
    ],
)
def test_a_degree_not_dividing_the_chosen_layers_names_a_fitting_one(
    model: str, degree: int, layers: dict[str, tuple[str, ...]], said: str
) -> None:
    (problem,) = problems(model, layers, degree)
    assert problem.startswith("matrix.tensor_degree: ")
    assert said in problem


def test_a_plan_with_a_fault_beyond_sizes_fails_in_its_first_step() -> None:
    """A norm over all heads, and an activation with parameters."""
    plans = {
        "causal-lm/olmo2": TensorLayers(colwise=QKV, rowwise=(OUTPUT,)),
        "causal-lm/apertus": TensorLayers(colwise=GATES[1:], rowwise=(DOWN,)),
    }
    cases = {
        name: Case(
            model=name, options={"strategy": Strategy.TENSOR, "tensor_plan": plan}, layer_count=None
        )
        for name, plan in plans.items()
    }
    said = train_cases(cases, "cpu", 2)
    assert "under this tensor plan, the model's layers don't fit: " in str(said["causal-lm/olmo2"])
    assert "processes compute different gradients of model.layers.0.mlp.act_fn.alpha" in str(
        said["causal-lm/apertus"]
    )
