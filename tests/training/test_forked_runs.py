"""Runs of the built-in tasks that a shared job forks train as those of new interpreters do."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.training.jobs import REPO_ROOT
from tests.training.run_documents import run_document, run_training
from tests.unit.parent import shared_job
from tests.unit.parent.shared_job import SharedJob

ENTRY = REPO_ROOT / "training" / "entry"
PROGRAMS = (ENTRY / "traindyno_train.py", ENTRY / "traindyno_ranks.py")
ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "HF_HUB_OFFLINE": "1",
    "CUDA_VISIBLE_DEVICES": "",
    "GLOO_SOCKET_IFNAME": "lo",
}
DDP = {"strategy": "ddp", "batch_size_per_device": 2}
DOCUMENTS = {
    "first": run_document(),
    "diverges": run_document(settings={"learning_rate": {"base": 1e30}}),
    "two": run_document(settings=DDP),
    "again": run_document(),
}


SWEEP = {
    "fp32": run_document(),
    "bf16": run_document(settings={"precision": "bf16"}),
    "diverges": DOCUMENTS["diverges"],
    "recomputes": run_document(settings={"activation_checkpointing": True}),
    "ddp": run_document(settings={**DDP, "precision": "bf16"}),
    "fsdp": run_document(settings={**DDP, "strategy": "fsdp"}),
}
# In place of training/main.py: it counts what the real one allocates.
TRACKED = f"""
import os, sys
from pathlib import Path


def main() -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "training"]:
        del sys.modules[name]
    sys.path.insert(0, {str(REPO_ROOT)!r})
    from training.main import main as train
    from training.memory.tracker import MemoryTracker

    with MemoryTracker() as tracker:
        leave = os._exit  # as the real program does, so that nothing after it runs

        def note_and_leave(code: int) -> None:
            folder = Path(os.environ["TRAINDYNO_STEP_LOG_DIRECTORY"])
            (folder / ("peak-" + os.environ.get("RANK", "0"))).write_text(str(max(tracker.levels)))
            leave(code)

        os._exit = note_and_leave
        train()
"""
DRAWS = """
import os, random
from pathlib import Path

import numpy as np
import numpy.random


def main() -> None:
    path = Path(os.environ["TRAINDYNO_STEP_LOG_DIRECTORY"], "drawn-" + os.environ.get("RANK", "0"))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{random.random()} {np.random.random()}")
"""


def carry(root: Path, documents: Mapping[str, Any], texts: Path) -> SharedJob:
    sizes = {
        name: 1 if document["settings"]["strategy"] == "single" else 2
        for name, document in documents.items()
    }
    runs = [
        shared_job.run_document(
            name,
            launcher="process" if sizes[name] == 1 else "torchrun",
            processes_per_host=sizes[name],
            hyperparameters=document,
            channels={"train": "train"},
        )
        for name, document in documents.items()
    ]
    folder = root / "algo-1" / "input" / "data"
    folder.mkdir(parents=True)
    (folder / "train").symlink_to(texts)
    job = SharedJob(root=root, runs=runs, programs=PROGRAMS, environment=ENVIRONMENT)
    with job.start() as parent:
        output, _ = parent.communicate()
    assert parent.returncode == 0, output
    return job


@pytest.fixture(scope="module")
def forked(tmp_path_factory: pytest.TempPathFactory, texts: Path) -> SharedJob:
    return carry(tmp_path_factory.mktemp("job"), DOCUMENTS, texts)


def lines_of(job: SharedJob, run_id: str, rank: int = 0) -> list[dict[str, Any]]:
    (path,) = (job.folder() / run_id / "step_log" / "job-a1").glob(f"rank-{rank:05d}.*.jsonl")
    return [json.loads(line) for line in path.read_text().splitlines()]


def losses(lines: list[dict[str, Any]]) -> list[tuple[int, float]]:
    return [(line["step"], line["loss"]) for line in lines if line["kind"] == "step"]


def test_forked_runs_train_as_new_interpreters_do(
    forked: SharedJob, texts: Path, tmp_path: Path
) -> None:
    fresh = run_training(
        tmp_path, DOCUMENTS["first"], texts, is_forked=False, environment=ENVIRONMENT
    )
    assert fresh.exit_code == 0
    assert len(losses(fresh.lines())) == 10
    assert (
        losses(lines_of(forked, "first"))
        == losses(lines_of(forked, "again"))
        == losses(fresh.lines())
    )
    (known,) = (line["facts"] for line in fresh.lines() if line["kind"] == "environment")
    (facts,) = (
        line["facts"] for line in lines_of(forked, "again") if line["kind"] == "environment"
    )
    assert facts == {**known, "shared_job": {"place": 4, "forked": True}}


@pytest.mark.nightly
def test_runs_of_one_job_end_train_and_allocate_as_alone(tmp_path: Path, texts: Path) -> None:
    """Whatever ran before. The peak is that of each process's tensors."""

    def tracked(*names: str) -> SharedJob:
        package = tmp_path / "-".join(names) / "code" / "training"
        package.mkdir(parents=True)
        (package / "__init__.py").touch()
        (package / "main.py").write_text(TRACKED)
        return carry(package.parents[1], {name: SWEEP[name] for name in names}, texts)

    together = tracked(*SWEEP)
    for name, document in SWEEP.items():
        jobs = together, tracked(name)
        assert [(job.end(name) or {})["exit_code"] for job in jobs] == [int(name == "diverges")] * 2
        for rank in range(1 if document["settings"]["strategy"] == "single" else 2):
            logs = [losses(lines_of(job, name, rank)) for job in jobs]
            assert logs[0] == logs[1]
            assert len(logs[0]) == 10 or name == "diverges"
            peaks = [
                int((job.folder() / name / "step_log" / f"peak-{rank}").read_text()) for job in jobs
            ]
            assert peaks[0] == pytest.approx(peaks[1], rel=0.01)


def test_forked_ranks_meet_as_torchruns_do(forked: SharedJob, texts: Path, tmp_path: Path) -> None:
    alone = run_training(tmp_path, DOCUMENTS["two"], texts, processes=2)
    for rank in (0, 1):
        lines = lines_of(forked, "two", rank)
        assert losses(lines) == losses(alone.lines(rank))
        assert (lines[0]["rank"], lines[0]["world_size"]) == (rank, 2)


def test_each_forked_run_ends_as_its_own(forked: SharedJob) -> None:
    ends = {name: forked.end(name) or {} for name in DOCUMENTS}
    assert {name: end["exit_code"] for name, end in ends.items()} == {
        "first": 0,
        "diverges": 1,
        "two": 0,
        "again": 0,
    }
    assert ends["diverges"]["failure"].startswith("traindyno-outcome: loss_diverged")
    assert {name: end["leftovers"]["processes"] for name, end in ends.items()} == dict.fromkeys(
        DOCUMENTS, 0
    )


def test_a_forked_run_counts_its_start_from_the_fork(forked: SharedJob) -> None:
    """The source of the ranks, which lives through the job, is not its launcher."""
    for name in DOCUMENTS:
        end = forked.end(name) or {}
        phases = [line for line in lines_of(forked, name) if line["kind"] == "phase"]
        assert min(line["begin"] for line in phases) >= end["began_at"] - 0.1
        names = {line["name"] for line in phases}
        assert names & {"launch", "import", "fork"} == {"fork"}


def test_forked_processes_draw_numbers_of_their_own(tmp_path: Path) -> None:
    package = tmp_path / "code" / "training"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "main.py").write_text(DRAWS)
    two = shared_job.run_document("two", launcher="torchrun", processes_per_host=2)
    runs = [shared_job.run_document("one"), two, shared_job.run_document("again")]
    job = SharedJob(root=tmp_path, runs=runs, programs=PROGRAMS, environment=ENVIRONMENT)
    exit_code, output = job.carry()
    assert exit_code == 0, output
    drawn = [path.read_text().split() for path in job.folder().glob("*/step_log/drawn-*")]
    assert len(drawn) == 4
    assert len({number for numbers in drawn for number in numbers}) == 8
