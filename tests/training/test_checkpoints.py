"""A run that is cut off resumes at the same step with the same data and the same losses, or says
why it does not.
"""

import json
import os
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
import torch
from torch import distributed

from tests.nightly import NIGHTLY
from tests.training.checkpointed import Attempt, Ended, train_attempt, train_attempts
from tests.training.forked import run_group
from tests.training.run_documents import write_texts
from traindyno.callbacks import StepLogger
from traindyno.callbacks.checkpoints import MARKER, measure_log, read_marker
from traindyno.core.step_log.line import DIRECTORY_VARIABLE
from training.checkpoints.slots import Slots
from training.process.process_group import end_process_group, read_topology, start_process_group

DROPOUT = {"dropout": 0.1}
# PyTorch says this of every checkpoint of one process, which is nothing to be warned of.
pytestmark = pytest.mark.filterwarnings(
    "ignore:torch.distributed is disabled, unavailable or uninitialized"
)
STREAMED = "ddp, streamed"
SPREAD: dict[str, dict[str, Any]] = {
    "ddp": {
        "strategy": "ddp",
        "loader_workers": 1,
        "lr_schedule": "cosine",
        "lr_warmup_steps": 2,
        **DROPOUT,
    },
    "fsdp, fp16": {"strategy": "fsdp", "precision": "fp16"},
    "pipeline": {
        "strategy": "pipeline",
        "pipeline_degree": 2,
        "batch_size_per_device": 4,
        "micro_batches": 2,
    },
    # Two accumulated batches and three workers: a resumed run begins in the middle of the workers'
    # turns.
    STREAMED: {"strategy": "ddp", "loader_workers": 3, "gradient_accumulation_steps": 2, **DROPOUT},
}
if NIGHTLY:
    SPREAD |= {
        "fsdp": {"strategy": "fsdp", **DROPOUT},
        "zero1": {"strategy": "zero1", **DROPOUT},
        "tensor": {"strategy": "tensor", "tensor_degree": 2},
        "sgd": {"strategy": "ddp", "optimizer": "sgd", "gradient_clip_norm": 0.1},
    }
TOLD = tuple(SPREAD)[: None if NIGHTLY else 1]
CUT_OFF = 3
RESUMED_AFTER = 2
TOLD_AFTER = 3
STEPS = 5
Trained = dict[str, dict[str, list[Ended]]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("checkpoints")


def attempt_of(name: str, folder: Path, texts: Path, **changes: Any) -> Attempt:
    attempt = Attempt(settings=SPREAD[name], checkpoints=str(folder), steps=STEPS)
    return replace(attempt, texts=str(texts) if name == STREAMED else None, **changes)


@pytest.fixture(scope="module")
def spread(folder: Path) -> Trained:
    """What each of two ranks did uninterrupted, until it was cut off or told to stop, and
    afterwards, by strategy.
    """
    named = (
        [("whole", name) for name in SPREAD]
        + [("cut", name) for name in SPREAD]
        + [("told", name) for name in TOLD]
    )
    changes: dict[str, dict[str, Any]] = {
        "whole": {"checkpoints": None},
        "cut": {"stops_after": CUT_OFF},
        "told": {"stops_after": TOLD_AFTER, "is_told": True, "every_steps": None},
    }
    texts = write_texts(folder / "texts")
    attempts = {
        (kind, name): attempt_of(name, folder / f"{name} {kind}", texts, **changes[kind])
        for kind, name in named
    }
    later = {
        (f"after {kind}", name): replace(attempt, stops_after=None, is_told=False)
        for (kind, name), attempt in attempts.items()
        if kind != "whole"
    }
    ended_by_name: Trained = {name: {} for name in SPREAD}
    for group in (attempts, later):
        by_rank = run_group(train_attempts, list(group.values()), processes=2)
        for number, (kind, name) in enumerate(group):
            ended_by_name[name][kind] = [ended[number] for ended in by_rank]
    return ended_by_name


def assert_same(resumed: list[Ended], expected: list[Ended], steps: range) -> None:
    """The losses of every rank and the model are the same bit by bit."""
    for mine, theirs in zip(resumed, expected, strict=True):
        assert mine.losses == {step: loss for step, loss in theirs.losses.items() if step in steps}
        assert mine.parameters.keys() == theirs.parameters.keys()
        for name, parameter in mine.parameters.items():
            assert torch.equal(parameter, theirs.parameters[name]), name
    assert any(ended.losses for ended in resumed)


@pytest.mark.parametrize("name", SPREAD)
def test_a_resumed_run_has_the_losses_and_the_model_of_an_uninterrupted_one(
    spread: Trained, name: str
) -> None:
    ended_by_kind = spread[name]
    assert max(max(ended.losses, default=0) for ended in ended_by_kind["cut"]) == CUT_OFF
    assert_same(
        ended_by_kind["after cut"], ended_by_kind["whole"], range(RESUMED_AFTER + 1, STEPS + 1)
    )


@pytest.mark.parametrize("name", TOLD)
def test_a_run_told_to_stop_loses_no_step(spread: Trained, name: str) -> None:
    ended_by_kind = spread[name]
    for ended in ended_by_kind["told"]:
        assert ended.stopped.startswith(
            "RunStopped: the run was stopped after step 3; the checkpoint"
        ), ended
    assert_same(
        ended_by_kind["after told"], ended_by_kind["whole"], range(TOLD_AFTER + 1, STEPS + 1)
    )


@pytest.mark.parametrize(("before", "after"), [(2, 4), (4, 2)] if NIGHTLY else [(2, 4)])
def test_another_number_of_processes_resumes_with_the_same_losses(
    tmp_path: Path, before: int, after: int
) -> None:
    def attempt(strategy: str, processes: int, **changes: Any) -> Attempt:
        settings = {"strategy": strategy, "batch_size_per_device": 8 // processes}
        values = {"checkpoints": str(tmp_path / strategy), "steps": STEPS, **changes}
        return Attempt(settings=settings, **values)

    strategies = ("ddp", "fsdp")
    whole = [attempt(strategy, before, checkpoints=None) for strategy in strategies]
    cut = [attempt(strategy, before, stops_after=CUT_OFF) for strategy in strategies]
    expected = run_group(train_attempts, [*whole, *cut], processes=before)
    resumed = run_group(
        train_attempts, [attempt(strategy, after) for strategy in strategies], processes=after
    )
    for number in range(len(strategies)):
        losses = [mean_losses([rank[number] for rank in ranks]) for ranks in (resumed, expected)]
        assert losses[0] == pytest.approx({step: losses[1][step] for step in (3, 4, 5)}, abs=1e-6)
        for name, parameter in resumed[0][number].parameters.items():
            torch.testing.assert_close(
                parameter, expected[0][number].parameters[name], rtol=1e-5, atol=1e-6
            )


def mean_losses(ranks: list[Ended]) -> dict[int, float]:
    """The mean over the ranks, each of which logs the loss of its own samples; all have equally
    many.
    """
    return {step: fmean(ended.losses[step] for ended in ranks) for step in ranks[0].losses}


def single(folder: Path, **changes: Any) -> Attempt:
    return replace(
        Attempt(settings={"strategy": "single", **DROPOUT}, checkpoints=str(folder)), **changes
    )


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Ended:
    folder = tmp_path_factory.mktemp("reference")
    return train_attempt(single(folder / "c"))


def newest(folder: Path) -> Path:
    return max(
        folder.glob(f"*/{MARKER}"), key=lambda path: json.loads(path.read_text())["facts"]["step"]
    ).parent


def cut_short(folder: Path) -> str:
    path = next(newest(folder).glob("*.distcp"))
    path.write_bytes(path.read_bytes()[:-100])
    return "bytes; expected"


def cut_the_log_short(folder: Path) -> str:
    """Leave what an upload leaves that is interrupted between the last checkpoint and the log of
    its steps.
    """
    (log,) = (folder.parent / "log").rglob("rank-*.jsonl")
    whole = log.read_text()
    log.write_text(whole[: whole.index('"step":6')])
    return "the log of its steps"


@pytest.mark.parametrize("damage", [cut_short, cut_the_log_short])
def test_damaged_checkpoint_is_refused_and_the_one_before_it_is_used(
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    reference: Ended,
    damage: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder = tmp_path / "c"
    monkeypatch.setenv(DIRECTORY_VARIABLE, str(tmp_path / "log"))
    train_attempt(single(folder, stops_after=7))  # complete checkpoints of the steps 2, 4 and 6
    words = damage(folder)
    capfd.readouterr()
    ended = train_attempt(single(folder))
    refusals = [
        line for line in capfd.readouterr().err.splitlines() if "checkpoint refused" in line
    ]
    assert len(refusals) == 1
    assert words in refusals[0]
    assert ended.losses == {step: loss for step, loss in reference.losses.items() if step > 4}


def complete_on_a_host_of_its_own(folder: str) -> dict[str, int]:
    """Each process has a log on its own host; returns what the checkpoint's marker says of the
    logs.
    """
    topology = read_topology()
    os.environ |= {
        DIRECTORY_VARIABLE: f"{folder}/host-{topology.rank}",
        "TRAINING_JOB_NAME": "job-a1",
    }
    step_log = StepLogger(os.environ[DIRECTORY_VARIABLE])
    step_log.open()
    start_process_group("gloo", topology, torch.device("cpu"))
    slots = Slots(Path(folder, "state"), topology, distributed.group.WORLD)
    slot = slots.begin()
    slots.complete(slot, [], {}, measure_log())
    log: dict[str, int] = read_marker(slot)["log"]
    end_process_group()
    return log


def test_a_checkpoint_names_the_logs_of_all_hosts(tmp_path: Path) -> None:
    of_each_rank = run_group(complete_on_a_host_of_its_own, str(tmp_path), processes=2)
    logs = {
        path.parent.name + "/" + path.name for path in tmp_path.glob("host-*/job-a1/rank-*.jsonl")
    }
    assert [set(names) for names in of_each_rank] == [logs, logs]
    assert len(logs) == 2
    assert all(size > 0 for size in of_each_rank[0].values())


def test_a_checkpoint_of_other_settings_is_refused(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "c"
    train_attempt(single(folder, stops_after=3))
    ended = train_attempt(
        single(folder, settings={"strategy": "single", "weight_decay": 0.5, **DROPOUT})
    )
    error = capfd.readouterr().err
    assert "is of other settings: it has weight_decay 0.0, where this run has 0.5" in error
    assert min(ended.losses) == 1


def test_only_the_latest_checkpoints_are_kept(tmp_path: Path) -> None:
    folder = tmp_path / "c"
    train_attempt(single(folder, every_steps=1))
    steps = [json.loads(path.read_text())["facts"]["step"] for path in folder.glob(f"*/{MARKER}")]
    assert sorted(steps) == [6, 7, 8]
    assert sorted(path.name for path in folder.iterdir()) == ["slot-0", "slot-1", "slot-2"]


def test_checkpoint_logs_its_phase_and_its_background_write_with_their_bytes(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "c"
    train_attempt(single(folder))
    (log,) = (tmp_path / "log").rglob("rank-*.jsonl")
    phases = [
        line for line in map(json.loads, log.read_text().splitlines()) if line["kind"] == "phase"
    ]
    blocking = [phase for phase in phases if phase["name"] == "checkpoint"]
    writes = [phase for phase in phases if phase["name"] == "checkpoint_write"]
    assert (
        [phase["facts"]["step"] for phase in blocking]
        == [phase["facts"]["step"] for phase in writes]
        == [2, 4, 6, 8]
    )
    files = sum(path.stat().st_size for path in newest(folder).iterdir() if path.name != MARKER)
    assert writes[-1]["facts"]["bytes"] == files
    # Parameters and two moments of AdamW, 4 bytes each; one number per tensor is beside them.
    parameters = (
        sum(tensor.numel() for tensor in train_attempt(single(folder)).parameters.values())
        - 96 * 32
    )  # tied
    assert 12 * parameters <= blocking[-1]["facts"]["bytes"] < 12 * parameters + 100_000
