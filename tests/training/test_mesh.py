"""What a mesh of processes does beside training: unequal batches, other shards, and resuming
divided in another way.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.distributed.tensor import DTensor

from tests.nightly import NIGHTLY
from tests.training.checkpointed import Attempt, train_attempts
from tests.training.forked import run_group
from tests.training.run_documents import run_document, run_training, write_texts
from tests.training.strategy_cases import GPT, LLAMA, Case, blueprint_of, global_batch
from tests.training.strategy_trial import make_setup
from traindyno.core.suite.choices import Strategy
from training.process.process_group import end_process_group, read_topology
from training.strategies import build_strategy

pytestmark = pytest.mark.filterwarnings(
    "ignore:torch.distributed is disabled, unavailable or uninitialized"
)
MESH = {"strategy": Strategy.MESH}
LENGTHS = (12, 7, 12)
MESH_2 = {"strategy": "mesh", "tensor_degree": 2}
FSDP = {"strategy": "fsdp"}
PIPELINED = {"pipeline_degree": 2, "micro_batches": 2}
# Of four processes: with the batch of a replica, so that a step has the same samples.
COMPOSITIONS: dict[str, dict[str, Any]] = {
    "fsdp": {**FSDP, "batch_size_per_device": 2},
    "tensor 2": {"strategy": "tensor", "tensor_degree": 2, "batch_size_per_device": 4},
    "pipeline 2": {"strategy": "pipeline", **PIPELINED, "batch_size_per_device": 4},
    "tensor 2 × shard 2": {**MESH_2, "batch_size_per_device": 4},
    "shard 2 × pipeline 2": {"strategy": "mesh", **PIPELINED, "batch_size_per_device": 4},
    "tensor 2 × pipeline 2": {
        **MESH_2,
        **PIPELINED,
        "pipeline_schedule": "interleaved",
        "batch_size_per_device": 8,
    },
}
TIED = {"model_type": "llama", **LLAMA, "vocab_size": 96, "tie_word_embeddings": True}
RESUMED = [
    ("fsdp", "tensor 2 × pipeline 2"),
    ("tensor 2 × pipeline 2", "tensor 2"),
    ("tensor 2 × shard 2", "pipeline 2"),
    ("pipeline 2", "fsdp"),
]
GPTJ = {
    "model_type": "gptj",
    "rotary_dim": 4,
    **GPT,
    "vocab_size": 96,
}  # its blocks drop hidden states
CHOSEN = {"colwise": ["h.0.mlp.c_fc"], "rowwise": ["h.0.mlp.c_proj"]}
IN_FIRST_STAGE = {**MESH_2, **PIPELINED, "tensor_plan": CHOSEN, "batch_size_per_device": 4}


def gradients(options: dict[str, Any]) -> dict[str, torch.Tensor]:
    """The whole gradients [...] of a step of batches of unequal length, each rank with the same
    rows.
    """
    torch.set_num_threads(1)
    setup = make_setup(Case(model="llama", options=options), read_topology())
    strategy = build_strategy(setup)
    strategy.place(blueprint_of(Case(model="llama")))
    strategy.set_training(True)
    whole = global_batch("llama", 0)
    strategy.forward_backward(
        [{name: tensor[:, :length] for name, tensor in whole.items()} for length in LENGTHS]
    )
    gradients_by_name = {
        name: tensor.grad.full_tensor() if isinstance(tensor.grad, DTensor) else tensor.grad
        for name, tensor in strategy.named_tensors().items()
        if tensor.grad is not None
    }
    end_process_group()
    return gradients_by_name


@pytest.mark.parametrize(
    ("options", "processes"),
    [({"shard_degree": 2}, 2), ({"shard_degree": 2, "pipeline_degree": 2, "micro_batches": 2}, 4)][
        : None if NIGHTLY else 1
    ],
)
def test_accumulated_batches_of_unequal_length_all_count(
    options: dict[str, Any], processes: int
) -> None:
    expected = gradients({})
    by_rank = run_group(gradients, {**MESH, **options}, processes=processes)
    gathered = {name: gradient for rank in by_rank for name, gradient in rank.items()}
    assert gathered.keys() == expected.keys()
    for name, gradient in expected.items():
        torch.testing.assert_close(gathered[name], gradient, rtol=1e-4, atol=1e-6)


if NIGHTLY:
    RESUMED = [(before, after) for before in COMPOSITIONS for after in COMPOSITIONS]


def attempt(composition: str, folder: Path | None, **changes: Any) -> Attempt:
    settings = {"dropout": 0.0, "gradient_clip_norm": 0.1, **COMPOSITIONS[composition]}
    values = {
        "checkpoints": None if folder is None else str(folder),
        "steps": 5,
        "model": TIED,
        **changes,
    }
    return Attempt(settings=settings, **values)


def test_a_run_resumes_divided_in_another_way_with_the_same_losses(tmp_path: Path) -> None:
    folders = [tmp_path / str(number) / "c" for number in range(len(RESUMED))]
    cut = [
        attempt(before, folder, stops_after=3)
        for (before, _), folder in zip(RESUMED, folders, strict=True)
    ]
    later = [attempt(after, folder) for (_, after), folder in zip(RESUMED, folders, strict=True)]
    first = run_group(train_attempts, [attempt("fsdp", None), *cut], processes=4)
    resumed = run_group(train_attempts, later, processes=4)
    whole = [rank[0].losses for rank in first]
    expected = {step: sum(losses[step] for losses in whole) / 4 for step in (3, 4, 5)}
    for number in range(len(RESUMED)):
        held = [rank[number].losses for rank in resumed if rank[number].losses]
        assert all(set(losses) == {3, 4, 5} for losses in held), resumed[0][number].stopped
        for step, loss in expected.items():
            assert sum(losses[step] for losses in held) / len(held) == pytest.approx(loss, abs=2e-6)
        for name, parameter in first[0][0].parameters.items():
            torch.testing.assert_close(
                resumed[0][number].parameters[name], parameter, rtol=1e-4, atol=1e-5
            )


def test_dropout_and_chosen_layers_after_a_resume(tmp_path: Path) -> None:
    dropping = {"dropout": 0.5, "batch_size_per_device": 4}
    before = Attempt(
        settings={**dropping, **FSDP, "batch_size_per_device": 2},
        checkpoints=str(tmp_path / "dropout" / "c"),
        steps=5,
        stops_after=3,
        model=GPTJ,
    )
    after = replace(
        before, settings={**dropping, "strategy": "tensor", "tensor_degree": 2}, stops_after=None
    )
    converted = replace(
        before,
        settings={**IN_FIRST_STAGE, "dropout": 0.0},
        checkpoints=str(tmp_path / "chosen" / "c"),
        model=None,
    )
    run_group(train_attempts, [before, converted], processes=4)
    resumed = run_group(train_attempts, [after, replace(converted, stops_after=None)], processes=4)
    # Processes of one tensor group drop the same numbers; replicas drop others.
    losses = [rank[0].losses for rank in resumed]
    assert [set(loss) for loss in losses] == [{3, 4, 5}] * 4, [rank[0].stopped for rank in resumed]
    for one, other in ((0, 1), (2, 3)):
        assert losses[one] == pytest.approx(losses[other], abs=1e-6)
        assert torch.equal(resumed[one][0].random_state, resumed[other][0].random_state)
    assert not torch.equal(resumed[0][0].random_state, resumed[2][0].random_state)
    # GPT-2's layers are converted on the first stage only, and both stages find the same layout.
    assert {step for rank in resumed for step in rank[1].losses} == {3, 4, 5}


def test_converted_layers_do_not_resume_as_others(tmp_path: Path) -> None:
    # GPT-2's square projections would be read transposed, without an error.
    both = {"dropout": 0.0, "batch_size_per_device": 4}
    cut = Attempt(
        settings={**both, **MESH_2}, checkpoints=str(tmp_path / "c"), steps=3, stops_after=3
    )
    later = Attempt(
        settings={**both, **FSDP, "batch_size_per_device": 2}, checkpoints=cut.checkpoints, steps=3
    )
    run_group(train_attempts, [cut], processes=2)
    again, other = run_group(train_attempts, [replace(cut, stops_after=None), later], processes=2)[
        0
    ]
    assert set(again.losses) == {3}
    assert set(other.losses) == {1, 2, 3}


@pytest.mark.parametrize(("divided", "replicas"), [(PIPELINED, 1), ({"shard_degree": 2}, 2)])
def test_a_composition_counts_the_flops_of_one_process(
    divided: dict[str, Any], replicas: int, tmp_path: Path
) -> None:
    """FLOPs of a step: those of a token × the tokens of all processes.

    Processes of a replica share a batch.
    """
    texts = write_texts(tmp_path / "texts")
    mesh = {**MESH_2, **divided, "batch_size_per_device": 4}
    one, four = (
        flops_of_steps(tmp_path / str(processes), texts, settings, processes)
        for settings, processes in (({"batch_size_per_device": 4 * replicas}, 1), (mesh, 4))
    )
    assert one == four
    assert len(one) == 4


def flops_of_steps(
    folder: Path, texts: Path, settings: dict[str, Any], processes: int
) -> list[float]:
    folder.mkdir()
    document = run_document(settings=settings, measurement={"max_steps": 4})
    end = run_training(folder, document, texts, processes=processes)
    assert end.exit_code == 0, end.output
    (model,) = end.of_kind("model")
    by_rank = [[step["tokens"] for step in end.of_kind("step", rank)] for rank in range(processes)]
    return [model["flops_per_token"] * sum(tokens) for tokens in zip(*by_rank, strict=True)]
