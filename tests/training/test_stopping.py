"""Runs that set their own end: at the target of their goal, or once their steps lasted long
enough.
"""

from math import ceil
from pathlib import Path
from statistics import median

from tests.training.jobs import JobEnd
from tests.training.run_documents import run_document, run_training

# An untrained model has a loss of ln 400 = 6.0. It reaches the one at once, the other never.
EASY = 100.0
IMPOSSIBLE = 1e-6


def run_to(folder: Path, data: Path, target: float, *, strategy: str, processes: int) -> JobEnd:
    settings = {"strategy": strategy, "batch_size_per_device": 2}
    measurement = {"max_steps": 7, "evaluate_every_steps": 3, "save_model": True}
    document = run_document(settings=settings, measurement=measurement)
    end = run_training(
        folder,
        {**document, "target": {"quality": "loss", "value": target}},
        data,
        processes=processes,
    )
    assert end.exit_code == 0, end.output
    return end


def test_a_run_ends_on_all_ranks_after_its_evaluation_at_the_target(
    tmp_path: Path, texts: Path
) -> None:
    end = run_to(tmp_path, texts, EASY, strategy="ddp", processes=2)
    for rank in (0, 1):
        assert [line["step"] for line in end.of_kind("evaluation", rank)] == [3]
        assert len(end.of_kind("step", rank)) == 3
        (last,) = end.of_kind("end", rank)
        assert (last["steps"], last["reason"]) == (3, "target_reached")
    assert (tmp_path / "model" / "model.safetensors").exists()


def test_a_run_short_of_its_target_does_all_its_steps(tmp_path: Path, texts: Path) -> None:
    end = run_to(tmp_path, texts, IMPOSSIBLE, strategy="single", processes=1)
    assert [line["step"] for line in end.of_kind("evaluation")] == [3, 6, 7]
    (last,) = end.of_kind("end")
    assert (last["steps"], "reason" in last) == (7, False)


def test_a_run_of_short_steps_sets_the_same_number_on_all_ranks(
    tmp_path: Path, texts: Path
) -> None:
    document = run_document(
        settings={"strategy": "ddp"}, measurement={"max_steps": 8, "least_seconds": 1.0}
    )
    end = run_training(tmp_path, document, texts, processes=2)
    assert end.exit_code == 0, end.output
    steps = [end.of_kind("step", rank) for rank in (0, 1)]
    assert len(steps[0]) == len(steps[1]) > 8
    first = [step["end"] - step["begin"] for step in steps[0][2:7]]
    assert len(steps[0]) == max(8, 2 + ceil(1.0 / median(first)))
    assert "reason" not in end.of_kind("end")[0]


def test_a_run_of_long_steps_keeps_its_number(tmp_path: Path, texts: Path) -> None:
    document = run_document(measurement={"max_steps": 9, "least_seconds": 1e-4})
    assert len(run_training(tmp_path, document, texts).of_kind("step")) == 9
