"""The races of `make bench`: both sides begin with the same weights and count the same tokens."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import bench.race
from bench.bare_loop import BareLoop
from bench.equal_work import LOSS_DIFFERENCE, equal_work_figures
from bench.gpu_cases import GPT_J, MODELS, FullSize, full_size_cases
from bench.loop_cases import Size, best_cell_case, same_work_case
from bench.our_trainer import batches_of_steps, load_sequences, read_run, train_with_ours
from bench.plain_model import initial_weights
from bench.race import COMPARED_OPTIONS, largest_difference, largest_loss_difference, race
from bench.race_case import RaceCase
from bench.sample_rows import write_rows
from bench.their_trainer import SameWork
from traindyno.core.documents.plain import plain_values
from traindyno.core.run.settings import LearningRate, Settings
from traindyno.core.suite.suite_file import parse_part
from training.process.run_settings import RunSettings

pytestmark = pytest.mark.usefixtures("of_one_thread")

SMALL_GPT = {"n_embd": 16, "n_layer": 1, "n_head": 2, "rotary_dim": 4}
SMALL_ENCODER = {
    "hidden_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 32,
}
SMALL_LLAMA = {**SMALL_ENCODER, "num_key_value_heads": 2, "vocab_size": 256}
SMALL = {"llama": SMALL_LLAMA, "bert": SMALL_ENCODER, "albert": SMALL_ENCODER}
TINY = Size(hidden=16, layers=1, length=16, batch=4, steps=12, rounds=1, least_ratio=0.0)


@pytest.fixture
def case() -> RaceCase:
    return replace(same_work_case(TINY, is_quick=True), rounds=1)


def test_three_sides_with_the_same_work_have_the_same_losses(
    case: RaceCase, tmp_path: Path
) -> None:
    result = race(case, tmp_path)
    assert result.largest_loss_difference is not None
    assert result.largest_loss_difference <= LOSS_DIFFERENCE
    assert [figure.is_met for figure in equal_work_figures(case, result)] == [True]
    assert (
        len(result.our_step_seconds)
        == len(result.their_step_seconds)
        == len(result.bare_step_seconds)
        == 1
    )


@pytest.mark.parametrize(
    "options",
    [
        {"lr_schedule": "constant", "lr_warmup_steps": 10},
        {"lr_schedule": "linear"},
        {"lr_schedule": "cosine", "lr_warmup_steps": 0.15},
    ],
    ids=["constant", "linear", "cosine"],
)
def test_a_schedule_has_the_losses_of_the_trainer(
    case: RaceCase, tmp_path: Path, options: dict[str, Any]
) -> None:
    """Over a whole training of 100 steps, in which decay and clipping change the losses too."""
    plain = read_run(
        replace(case, steps=100, workload={**case.workload, "examples": 100 * TINY.batch}), {}
    )
    scheduled = parse_part({**plain_values(plain.settings), **options}, Settings)
    run, constant = (
        replace(plain, settings=replace(settings, **COMPARED_OPTIONS))
        for settings in (scheduled, plain.settings)
    )
    dataset = load_sequences(run, None, tmp_path)
    weights = initial_weights(run, dataset.tokenizer)
    steps = batches_of_steps(run, dataset)
    ours = train_with_ours(run, dataset).losses
    assert len(ours) == 100
    assert (
        largest_difference(ours, [SameWork(run, dataset, steps, weights).losses()])
        <= LOSS_DIFFERENCE
    )
    assert largest_difference(ours, [train_with_ours(constant, dataset).losses]) > LOSS_DIFFERENCE


@pytest.mark.parametrize(
    "model",
    [
        pytest.param(raced, id=raced.name, marks=() if raced.settings else pytest.mark.nightly)
        for raced in (*MODELS, GPT_J)
    ],
)
def test_the_raced_models_of_a_gpu_have_the_same_losses_on_both_sides(
    model: FullSize, tmp_path: Path
) -> None:
    """The models are small and run on this processor, which finds what one side counts
    otherwise.
    """
    kind = model.config["model_type"]
    small = replace(
        model,
        config={**model.config, **SMALL.get(kind, SMALL_GPT)},
        length=16,
        batch=4,
    )
    (case, *_) = full_size_cases((small,), is_quick=True)
    run = read_run(case, {})
    dataset = load_sequences(run, None, tmp_path)
    weights = initial_weights(run, dataset.tokenizer)
    assert largest_loss_difference(run, dataset, weights, with_bare=True) <= LOSS_DIFFERENCE


def test_other_initial_weights_are_unlike_work(case: RaceCase, tmp_path: Path) -> None:
    run = read_run(case, {})
    dataset = load_sequences(run, None, tmp_path)
    weights = dict(initial_weights(run, dataset.tokenizer))
    assert largest_loss_difference(run, dataset, weights, with_bare=True) <= LOSS_DIFFERENCE
    other = {
        name: value + 0.02 * torch.randn_like(value) if value.is_floating_point() else value
        for name, value in weights.items()
    }
    assert largest_loss_difference(run, dataset, other, with_bare=True) > LOSS_DIFFERENCE
    assert largest_loss_difference(run, dataset, other, with_bare=False) > LOSS_DIFFERENCE


@pytest.mark.parametrize("side", [SameWork, BareLoop])
@pytest.mark.parametrize(
    "left_out",
    [
        {"weight_decay": 0.0},
        {"gradient_clip_norm": None},
        {"learning_rate": LearningRate(base=1e-4)},
    ],
    ids=lambda left_out: next(iter(left_out)),
)
def test_an_option_left_out_on_one_side_is_unlike_work(
    case: RaceCase,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    side: type[Any],
    left_out: dict[str, Any],
) -> None:
    def without(run: RunSettings, *rest: Any) -> Any:
        return side(replace(run, settings=replace(run.settings, **left_out)), *rest)

    run = read_run(case, {})
    dataset = load_sequences(run, None, tmp_path)
    monkeypatch.setattr(bench.race, side.__name__, without)
    weights = initial_weights(run, dataset.tokenizer)
    assert (
        largest_loss_difference(run, dataset, weights, with_bare=side is BareLoop) > LOSS_DIFFERENCE
    )


@pytest.mark.parametrize("value", [math.nan, math.inf])
@pytest.mark.parametrize("step", range(3))
def test_a_non_finite_loss_is_unlike_work(value: float, step: int) -> None:
    ours = [0.5, 0.4, 0.3]
    theirs = [*ours[:step], value, *ours[step + 1 :]]
    assert largest_difference(ours, [ours, theirs]) == math.inf
    assert largest_difference(theirs, [ours]) == math.inf
    assert largest_difference(theirs, [theirs]) == math.inf
    assert largest_difference(ours, [ours]) == 0.0


def test_both_sides_count_the_same_tokens_of_the_same_rows(tmp_path: Path) -> None:
    data = tmp_path / "rows"
    data.mkdir()
    case = best_cell_case("BERT", str(write_rows(data)), is_quick=True)
    case = replace(case, candidates=case.candidates[:1], steps=2, warmup_steps=0)
    result = race(case, tmp_path)
    assert result.token_count_difference == 0
    assert [figure.is_met for figure in equal_work_figures(case, result)] == [True]
