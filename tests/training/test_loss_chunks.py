"""A loss in chunks is the loss of all logits, and refused where a head is not all of the logits."""

from dataclasses import replace

import pytest
import torch

from tests.training.small_models import VOCABULARY
from tests.training.strategy_cases import LLAMA, WORKLOADS, Case, blueprint_of, global_batch
from tests.training.strategy_trial import make_setup, train
from traindyno.core.run.workload import Model, Workload
from traindyno.core.suite.choices import Precision, Task
from training.errors import WorkloadError
from training.memory.estimate import estimate_memory
from training.models.objective import Objective
from training.process.process_group import Topology
from training.run.chunk_check import refuse_unless_the_head_is_apart
from training.strategies import build_strategy

pytestmark = pytest.mark.usefixtures("of_one_thread")


def refusal_of(name: str) -> str | None:
    """Why a small model's loss can't be in chunks."""
    case = Case(model=name, options={"loss_chunks": 5}, layer_count=None)
    setup = make_setup(case, Topology())
    strategy = build_strategy(setup)
    try:
        strategy.place(blueprint_of(case))
        refuse_unless_the_head_is_apart(setup, strategy, name.partition("/")[2], VOCABULARY)
    except WorkloadError as error:
        return str(error)
    return None


@pytest.mark.parametrize("precision", [Precision.FP32, Precision.BF16])
@pytest.mark.parametrize("model", ["gpt2", "llama", "albert"])
def test_the_loss_and_the_gradients_behind_the_head_are_the_same_bits(
    model: str, precision: Precision
) -> None:
    computed = []
    for rows in (None, 32):
        case = Case(model=model, options={"precision": precision}, layer_count=2)
        setup = make_setup(case, Topology())
        built = blueprint_of(case).materialise(torch.device("cpu"))
        objective = Objective(built, WORKLOADS[model][0], setup.number_format.autocast(), rows)
        loss = objective.train()(**global_batch(model, 0))
        loss.backward()
        gradients = {
            name: parameter.grad
            for name, parameter in built.named_parameters()
            if parameter.grad is not None
        }
        computed.append((loss, gradients))
    (whole, expected), (chunked, own) = computed
    assert torch.equal(whole, chunked)
    assert expected.keys() == own.keys()
    # The head's own weight and bias get the sum of their chunks' gradients.
    differing = [name for name in expected if not torch.equal(expected[name], own[name])]
    assert {tensor_name.rpartition(".")[2] for tensor_name in differing} <= {"weight", "bias"}
    assert len(differing) <= 2
    for name in differing:
        largest = float((expected[name] - own[name]).abs().max() / expected[name].abs().max())
        assert largest < (1e-6 if precision is Precision.FP32 else 8e-3)


def test_ten_steps_with_padded_rows_and_a_partial_last_chunk() -> None:
    for model in ("llama", "albert", "causal-lm/mixtral"):
        whole = train(Case(model=model, layer_count=2, is_padded=True), Topology())
        options = {"loss_chunks": 7}
        chunked = train(
            Case(model=model, options=options, layer_count=2, is_padded=True), Topology()
        )
        for mine, other in zip(chunked.losses, whole.losses, strict=True):
            assert mine == pytest.approx(other, abs=1e-6)


@pytest.mark.parametrize(
    ("name", "is_refused"),
    [("causal-lm/gemma2", True), ("causal-lm/qwen3_moe", False), ("masked-lm/bert", False)],
)
def test_a_model_with_more_than_a_head_is_refused(name: str, is_refused: bool) -> None:
    refusal = refusal_of(name)
    assert (refusal is not None) is is_refused, refusal
    if refusal is not None:
        assert f"with a {name.partition('/')[2]}: its logits have something behind" in refusal


def test_the_logits_are_never_all_there() -> None:
    """A vocabulary of 32,000 and 1,024 tokens: 125 MiB of logits in single precision."""
    config = {"model_type": "llama", **LLAMA, "vocab_size": 32_000, "max_position_embeddings": 512}
    asked = Workload(
        task=Task.CAUSAL_LM,
        examples=1,
        model=Model(config={**config, "num_hidden_layers": 1}),
        sequence_length=512,
    )
    settings = replace(Case(model="llama").settings(1), batch_size_per_device=2)
    whole, chunked = (
        estimate_memory(asked, replace(settings, loss_chunks=rows)).peak_bytes / 2**20
        for rows in (None, 128)
    )
    assert whole - chunked > 250
    assert chunked < whole / 3
