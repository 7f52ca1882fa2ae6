"""Whole runs as the container does them, on tiny models: what they log, save and evaluate."""

import json
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification, AutoTokenizer

from tests.training.jobs import JobEnd
from tests.training.run_documents import SEQUENCE_LENGTH, parse_run, run_document, run_training
from training.errors import WorkloadError
from training.process.process_group import Topology
from training.process.run_settings import with_accumulation


def mean_losses(end: JobEnd, processes: int) -> list[float]:
    by_rank = [[step["loss"] for step in end.of_kind("step", rank)] for rank in range(processes)]
    return [sum(losses) / processes for losses in zip(*by_rank, strict=True)]


def test_accumulation_follows_from_the_global_batch(tmp_path: Path, texts: Path) -> None:
    """Two processes of 2 samples keep 12 with three passes, and train as one process of 12 does."""
    losses = []
    for processes, batch in ((2, 2), (1, 12)):
        strategy = "ddp" if processes > 1 else "single"
        settings = {"strategy": strategy, "batch_size_per_device": batch, "global_batch_size": 12}
        (folder := tmp_path / strategy).mkdir()
        end = run_training(folder, run_document(settings=settings), texts, processes=processes)
        assert end.exit_code == 0, end.output
        steps = [end.of_kind("step", rank) for rank in range(processes)]
        assert {
            sum(step["samples"] for step in of_step) for of_step in zip(*steps, strict=True)
        } == {12}
        losses.append(mean_losses(end, processes))
    assert losses[0] == pytest.approx(losses[1], abs=1e-4)


def test_a_batch_unfit_for_the_global_batch_is_refused() -> None:
    """The lab refuses it before; the container has as many processes as it finds."""
    run = parse_run(run_document(settings={"batch_size_per_device": 5, "global_batch_size": 12}))
    with pytest.raises(
        WorkloadError,
        match=r"5 on 1 processes does not divide .* expected one of 1, 2, 3, 4, 6, 12",
    ):
        with_accumulation(run, Topology())


def test_a_run_logs_its_phases_steps_and_evaluation_and_saves_a_loadable_model(
    tmp_path: Path, texts: Path
) -> None:
    measurement = {"evaluate": True, "save_model": True}
    end = run_training(tmp_path, run_document(measurement=measurement), texts, is_forked=False)
    assert end.exit_code == 0, end.output
    kinds = [line["kind"] for line in end.lines() if line["kind"] not in ("phase", "host_load")]
    assert kinds == ["environment", "model", *["step"] * 10, "evaluation", "end"]
    phases = end.of_kind("phase")
    assert [phase["name"] for phase in phases] == [
        "import",
        "load",
        "setup",
        "evaluate",
        "save",
        "teardown",
    ]
    steps = end.of_kind("step")
    explained = sum(line["end"] - line["begin"] for line in [*phases, *steps])
    assert explained > 0.95 * (end.lines()[-1]["time"] - phases[0]["begin"])
    assert {(step["samples"], step["tokens"]) for step in steps} == {(4, 4 * SEQUENCE_LENGTH)}
    assert steps[-1]["loss"] < steps[0]["loss"]
    (evaluation,) = end.of_kind("evaluation")
    assert set(evaluation["metrics"]) == {"loss", "accuracy", "perplexity"}
    saved = AutoModelForCausalLM.from_pretrained(tmp_path / "model")
    assert (
        sum(parameter.numel() for parameter in saved.parameters())
        == end.of_kind("model")[0]["parameters"]
    )
    assert AutoTokenizer.from_pretrained(tmp_path / "model").vocab_size == saved.config.vocab_size


def test_the_model_of_the_best_evaluation_is_kept_and_changes_no_loss(
    tmp_path: Path, texts: Path
) -> None:
    """At this rate the loss of the last evaluation is not the lowest."""
    measurement = {
        "max_steps": 12,
        "evaluate_every_steps": 3,
        "save_model": True,
        "checkpoint_every_steps": 5,
    }
    losses = []
    for keeps in (False, True):
        document = run_document(
            settings={"learning_rate": {"base": 3.0}, "dropout": 0.1},
            measurement={**measurement, "save_best": keeps},
        )
        (folder := tmp_path / f"{keeps}").mkdir()
        environment = {"TRAINDYNO_CHECKPOINT_DIRECTORY": str(folder / "state")}
        end = run_training(folder, document, texts, environment=environment)
        assert end.exit_code == 0, end.output
        losses.append([step["loss"] for step in end.of_kind("step")])
    assert losses[0] == losses[1]
    evaluations = {line["step"]: line["metrics"] for line in end.of_kind("evaluation")}
    best = min(evaluations, key=lambda step: evaluations[step]["loss"])
    assert best != 12
    (kept,) = (folder / "state").glob("best-*")
    assert kept.name == f"best-{best}"
    assert json.loads((kept / "best.json").read_text()) == {
        "step": best,
        "metrics": evaluations[best],
    }
    models = [
        AutoModelForCausalLM.from_pretrained(folder_of_model).state_dict()
        for folder_of_model in (kept, folder / "model")
    ]
    assert not torch.equal(models[0]["lm_head.weight"], models[1]["lm_head.weight"])
    # SageMaker uploads this folder when the job ends, so that the best model needs no client
    beside = folder / "model" / "best" / "model.safetensors"
    assert beside.read_bytes() == (kept / "model.safetensors").read_bytes()
    assert not (tmp_path / "False" / "model" / "best").exists()


def test_a_run_evaluates_every_so_many_steps_and_at_its_end_on_all_ranks_alike(
    tmp_path: Path, texts: Path
) -> None:
    """Evaluation is a phase between steps; the losses of training are those of a run without it."""
    measurement = {"max_steps": 7, "evaluate_every_steps": 3}
    settings = {"strategy": "ddp", "batch_size_per_device": 2}
    document = run_document(settings=settings, measurement=measurement)
    end = run_training(tmp_path, document, texts, processes=2)
    assert end.exit_code == 0, end.output
    for rank in (0, 1):
        evaluations = end.of_kind("evaluation", rank)
        assert [line["step"] for line in evaluations] == [3, 6, 7]
        phases = [line for line in end.of_kind("phase", rank) if line["name"] == "evaluate"]
        steps = end.of_kind("step", rank)
        for phase, after in zip(phases, (3, 6), strict=False):
            assert steps[after - 1]["end"] <= phase["begin"]
            assert phase["end"] <= steps[after]["begin"] + 1e-3
    losses = [line["metrics"]["loss"] for line in end.of_kind("evaluation")]
    assert losses[-1] < losses[0]
    assert losses == [line["metrics"]["loss"] for line in end.of_kind("evaluation", 1)]


@pytest.mark.parametrize("model", ["gpt2", "albert", "bert"])
def test_two_processes_reproduce_the_losses_of_one(
    tmp_path: Path, texts: Path, reviews: Path, model: str
) -> None:
    data = reviews if model == "bert" else texts
    packing = {"packing": model == "gpt2", "padding": "bucket"}
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    one = run_training(
        tmp_path / "one",
        run_document(model, settings={**packing, "batch_size_per_device": 8}),
        data,
    )
    settings = {
        **packing,
        "strategy": "ddp",
        "batch_size_per_device": 2,
        "gradient_accumulation_steps": 2,
    }
    two = run_training(tmp_path / "two", run_document(model, settings=settings), data, processes=2)
    assert (one.exit_code, two.exit_code) == (0, 0), one.output + two.output
    assert mean_losses(two, 2) == pytest.approx(mean_losses(one, 1), abs=2e-5)
    assert sum(step["tokens"] for step in one.of_kind("step")) == sum(
        step["tokens"] for rank in range(2) for step in two.of_kind("step", rank)
    )


def test_a_classifier_learns_a_csv_and_its_accuracy_is_evaluated(
    tmp_path: Path, reviews: Path
) -> None:
    measurement = {"max_steps": 60, "evaluate": True, "save_model": True}
    settings = {"learning_rate": {"base": 0.01}, "padding": "longest", "loader_workers": 1}
    end = run_training(
        tmp_path, run_document("bert", settings=settings, measurement=measurement), reviews
    )
    assert end.exit_code == 0, end.output
    (evaluation,) = end.of_kind("evaluation")
    assert evaluation["metrics"]["accuracy"] == 1.0
    assert "perplexity" not in evaluation["metrics"]
    saved = AutoModelForSequenceClassification.from_pretrained(tmp_path / "model")
    assert saved.config.num_labels == 2


@pytest.mark.parametrize("model", ["gpt2", "albert", "bert", "gptj"])
def test_synthetic_data_needs_no_files_and_no_tokenizer(tmp_path: Path, model: str) -> None:
    workload = {"dataset": {"format": "synthetic"}, "tokenizer": None}
    end = run_training(
        tmp_path, run_document(model, workload=workload, measurement={"evaluate": True}), None
    )
    assert end.exit_code == 0, end.output
    assert len(end.of_kind("step")) == 10


def test_a_run_does_the_suites_examples_and_no_more(tmp_path: Path, texts: Path) -> None:
    # 30 examples, 4 a step: 8 steps
    end = run_training(tmp_path, run_document(workload={"examples": 30}), texts)
    assert len(end.of_kind("step")) == 8


def test_a_run_stops_when_its_step_time_is_known_well_enough(tmp_path: Path, texts: Path) -> None:
    measurement = {"max_steps": 2000, "stop_when": {"relative_half_width": 0.9}}
    end = run_training(
        tmp_path,
        run_document(settings={"strategy": "ddp"}, measurement=measurement),
        texts,
        processes=2,
    )
    assert end.exit_code == 0, end.output
    counts = {end.lines(rank)[-1]["steps"] for rank in range(2)}
    assert len(counts) == 1
    assert counts.pop() < 2000


def test_a_saved_model_is_trained_on_from_its_channel_with_its_own_tokenizer(
    tmp_path: Path, texts: Path
) -> None:
    (tmp_path / "first").mkdir()
    (tmp_path / "second").mkdir()
    first = run_training(
        tmp_path / "first", run_document(measurement={"save_model": True, "max_steps": 30}), texts
    )
    document = run_document(workload={"model": {"path": "s3://bucket/model"}, "tokenizer": None})
    environment = {"SM_CHANNEL_MODEL": str(tmp_path / "first" / "model")}
    second = run_training(tmp_path / "second", document, texts, environment=environment)
    assert second.exit_code == 0, second.output
    assert (
        second.of_kind("step")[0]["loss"]
        < first.of_kind("step")[10]["loss"]
        < first.of_kind("step")[0]["loss"]
    )
