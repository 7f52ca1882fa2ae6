"""What can't be spread is refused before anything is started, with what would be accepted."""

import math
import random
from itertools import accumulate, combinations, pairwise
from typing import Any

import pytest
import torch
from torch import distributed
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Shard
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedModel

from tests.training.forked import run_group
from tests.training.strategy_cases import GPT, LLAMA, Case, blueprint_of
from tests.training.strategy_rows import ROWS
from tests.training.strategy_trial import make_setup
from traindyno.core.run.settings import TensorLayers
from traindyno.core.suite.choices import Compiler, PipelineSchedule, Strategy, Task
from training.compilers import build_compiler
from training.compilers.inductor import is_recompilation
from training.errors import MissingFromImage, WorkloadError
from training.memory.fake_world import fake_process_group
from training.models.pipeline_stages import cut
from training.models.pipeline_stages import divide as divide_blocks
from training.models.tensor_plans import check_divisible, fused_count, plan_for
from training.process.process_group import Topology, read_topology, start_process_group
from training.strategies import build_strategy
from training.strategies.tensor_layers import (
    ConvertedLayers,
    check_replicated_gradients,
    is_converted,
)
from training.strategies.zero1 import divide

INTERLEAVED = {
    "strategy": Strategy.MESH,
    "pipeline_degree": 2,
    "pipeline_schedule": PipelineSchedule.INTERLEAVED,
}


def causal_model(kind: str, **config: Any) -> PreTrainedModel:
    model: PreTrainedModel = AutoModelForCausalLM.from_config(AutoConfig.for_model(kind, **config))
    return model


def test_every_strategy_is_compared_with_one_process() -> None:
    compared = {row.options["strategy"] for row in ROWS}
    assert set(Strategy) - compared == {Strategy.SMDDP}  # needs SageMaker's own library


@pytest.mark.parametrize(
    ("strategy", "name"),
    [("tensor", "tensor"), ("pipeline", "pipeline"), ("mesh", "shard"), ("mesh", "replicate")],
)
def test_degrees_with_another_product_are_refused(strategy: str, name: str) -> None:
    case = Case(model="gpt2", options={"strategy": Strategy(strategy), f"{name}_degree": 3})
    accepted = f"; expected {name}_degree 4 or {name}_degree 2$"
    with pytest.raises(
        WorkloadError,
        match=f"{name}_degree 3.* is not the number of the job's processes, 4{accepted}",
    ):
        build_strategy(make_setup(case, Topology(world_size=4)))


def test_a_plan_of_the_suite_divides_only_the_heads_of_its_blocks() -> None:
    chosen = TensorLayers(
        colwise=("h.1.attn.c_attn", "h.2.mlp.c_fc"), rowwise=("h.1.attn.c_proj", "h.2.mlp.c_proj")
    )
    plan = plan_for(causal_model("gpt2", **GPT), chosen)
    assert plan.per_rank == ("h.1.attn.num_heads", "h.1.attn.split_size")
    assert (fused_count(plan, "h.1.attn.c_attn"), fused_count(plan, "h.2.mlp.c_fc")) == (3, 1)


@pytest.mark.parametrize("style", ["colwise_gather_output", "rowwise_split_input"])
def test_layers_with_whole_outputs_leave_heads_rows_and_norms_whole(style: str) -> None:
    gpt2 = plan_for(
        causal_model("gpt2", **GPT), TensorLayers(**{style: ("h.*.attn.c_attn", "h.*.attn.c_proj")})
    )
    assert (gpt2.per_rank, fused_count(gpt2, "h.0.attn.c_attn")) == ((), 1)
    paths = tuple(f"layers.*.self_attn.{name}_proj" for name in "qkvo")
    qwen = plan_for(causal_model("qwen3", **LLAMA), TensorLayers(**{style: paths}))
    assert {*qwen.styles.values()} == {style}
    divided = plan_for(
        causal_model("qwen3", **LLAMA), TensorLayers(colwise=paths[:3], rowwise=paths[3:])
    )
    assert len({*divided.styles.values()}) == 3, (
        "the norms of divided heads have a style of their own"
    )


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("gpt2", True), ("masked-lm/modernbert", True), ("llama", False), ("gptj", False)],
)
def test_layers_are_converted_for_gpt2_and_modernbert(kind: str, expected: bool) -> None:
    model = blueprint_of(Case(model=kind, options={}, layer_count=2)).model
    assert is_converted(model.base_model, plan_for(model)) is expected


def test_chosen_layers_beside_attention_need_no_divisible_heads() -> None:
    model = causal_model("gpt2", **{**GPT, "n_embd": 30, "n_head": 3})
    chosen = TensorLayers(colwise=("h.*.mlp.c_fc",), rowwise=("h.*.mlp.c_proj",))
    plan = plan_for(model, chosen)
    check_divisible(model, plan, 2)
    assert {*plan.styles} == {"h.*.mlp.c_fc", "h.*.mlp.c_proj"}
    with pytest.raises(WorkloadError, match="3 num_attention_heads"):
        check_divisible(model, plan_for(model), 2)


def _compare(gradients: tuple[float, float], is_cut: bool) -> bool | str:
    """Compares the gradients of two ranks."""
    start_process_group("gloo", read_topology(), torch.device("cpu"))
    values = torch.full((4,), gradients[distributed.get_rank()])
    weight = torch.nn.Parameter(torch.ones(4))
    weight.grad = values
    if is_cut:
        mesh = init_device_mesh("cpu", (2,), mesh_dim_names=("tensor",))
        weight = torch.nn.Parameter(DTensor.from_local(torch.ones(4), mesh, [Shard(0)]))
        weight.grad = DTensor.from_local(values, mesh, [Shard(0)])
    try:
        return check_replicated_gradients([("norm.weight", weight)], distributed.new_group())
    except WorkloadError as error:
        return str(error)


def test_different_gradients_of_a_whole_parameter_are_refused() -> None:
    assert run_group(_compare, (1.0, 1.0), False, processes=2) == [True] * 2
    assert run_group(_compare, (1.0, 2.0), True, processes=2) == [True] * 2
    for said in run_group(_compare, (1.0, 2.0), False, processes=2):
        assert (
            "processes compute different gradients of norm.weight, which all hold whole; expected a"
            in said
        )


@pytest.mark.parametrize("gradients", [(math.inf, 1.0), (1.0, math.nan)])
def test_overflowed_gradients_are_compared_in_a_later_step(
    gradients: tuple[float, float],
) -> None:
    assert run_group(_compare, gradients, False, processes=2) == [False] * 2


@pytest.mark.parametrize("divided", ["tensor_degree", "shard_degree"])
def test_a_block_shared_by_two_stages_of_one_process_is_not_divided(divided: str) -> None:
    case = Case(model="albert", options={**INTERLEAVED, divided: 2})
    topology = Topology(world_size=4)
    with fake_process_group(topology):
        strategy = build_strategy(make_setup(case, topology))
        with pytest.raises(
            WorkloadError,
            match=r"two stages of one process share a block.*; expected shard_degree 1 ",
        ):
            strategy.place(blueprint_of(case))


@pytest.mark.parametrize(
    ("kind", "config", "reason"),
    [
        (
            "granite",
            {**LLAMA, "embedding_multiplier": 12.0},
            "it changes hidden states outside its blocks",
        ),
        ("nanochat", LLAMA, "it calls a module before its blocks and again after them"),
        (
            "rwkv",
            {"vocab_size": 64, "hidden_size": 32, "num_hidden_layers": 2},
            "it needs more of its blocks than",
        ),
    ],
)
def test_a_model_with_work_between_its_blocks_is_not_cut(
    kind: str, config: dict[str, Any], reason: str
) -> None:
    with pytest.raises(
        WorkloadError, match=f"can't cut model type {kind} into stages: {reason}.*expected strategy"
    ):
        cut(causal_model(kind, **config), 2, Task.CAUSAL_LM, None)


@pytest.mark.parametrize("seed", range(20))
def test_the_dearest_stage_costs_as_little_as_any_division_allows(seed: int) -> None:
    draw = random.Random(seed)
    blocks = [draw.choice([1.0, 2.0, 3.5]) for _ in range(draw.randint(1, 8))]
    head = draw.choice([0.0, 1.0, 5.0])
    count = draw.randint(1, len(blocks))
    cuts = [(0, *inner, len(blocks)) for inner in combinations(range(1, len(blocks)), count - 1)]
    least = min(_dearest(blocks, head, bounds) for bounds in cuts)
    bounds = (0, *accumulate(divide_blocks(blocks, head, count)))
    assert bounds in cuts
    assert _dearest(blocks, head, bounds) == least


def _dearest(blocks: list[float], head: float, bounds: tuple[int, ...]) -> float:
    return max(
        sum(blocks[first:end]) + (head if end == len(blocks) else 0.0)
        for first, end in pairwise(bounds)
    )


def test_a_large_head_leaves_its_stage_fewer_blocks() -> None:
    model = causal_model("gpt2", **{**GPT, "vocab_size": 800})  # as many weights as two blocks
    first, last = cut(model, 2, Task.CAUSAL_LM, None)
    assert [_own_blocks(stage) for stage in (first, last)] == [3, 1]


def _own_blocks(stage: torch.nn.Module) -> int:
    return sum(type(module).__name__ == "GPT2Block" for module in stage.modules())


def test_smddp_names_the_images_with_it() -> None:
    case = Case(model="gpt2", options={"strategy": Strategy.SMDDP})
    with pytest.raises(MissingFromImage, match="strategy smddp needs smdistributed"):
        build_strategy(make_setup(case, Topology(world_size=2)))


@pytest.mark.parametrize(
    ("compiler", "message"),
    [
        (Compiler.XLA, "compiler xla needs torch_xla, which this environment lacks"),
        (
            Compiler.NEURON,
            r"compiler neuron needs TorchNeuron \(torch_neuronx\), which this environment lacks",
        ),
    ],
)
def test_a_missing_compiler_says_its_needs(compiler: Compiler, message: str) -> None:
    with pytest.raises(MissingFromImage, match=message):
        build_compiler(compiler).accelerator(Topology())


def test_parts_of_the_optimizer_state_are_even() -> None:
    parameters = [torch.nn.Parameter(torch.zeros(size)) for size in (5, 1, 4, 2)]
    # largest first: 5 | 4, then 2 to the part of 4, then 1 to the part of 5
    assert [sorted(p.numel() for p in part) for part in divide(parameters, 2)] == [[1, 5], [2, 4]]


def test_a_fused_projection_is_ordered_by_rank() -> None:
    """32 features, 2 ranks: rank 0 has rows 0-15 of the query, 32-47 of the key and 64-79 of the
    value.
    """
    model = causal_model("gpt2", **GPT)
    name = "transformer.h.0.attn.c_attn.weight"
    weight = model.state_dict()[name].clone()
    held = ConvertedLayers(model, plan_for(model), 2).convert(name, weight)
    assert torch.equal(held[:48], weight.t()[[*range(16), *range(32, 48), *range(64, 80)]])


@pytest.mark.parametrize(
    ("compile_id", "expected"), [("0/0", False), ("3/0", False), ("0/1", True), ("12/3", True)]
)
def test_a_second_compilation_of_a_frame_is_a_recompilation(
    compile_id: str, expected: bool
) -> None:
    assert is_recompilation(compile_id) is expected
