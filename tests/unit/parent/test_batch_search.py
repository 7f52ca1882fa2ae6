"""The largest batch that fits a limited memory is found by real processes, and the run is measured with it."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.parent.filling import SAMPLE_BYTES
from tests.unit.parent.shared_job import SharedJob, run_document
from traindyno.core.search.largest_batch import BEST, LARGEST, MOST_PROBES

PROGRAM = Path(__file__).with_name("filling.py")


def searching(first: int, *arguments: str, choice: str = LARGEST, run_id: str = "a") -> dict[str, Any]:
    order = {"choice": choice, "first": first, "step": 1, "path": ["batch"]}
    return run_document(run_id, "--batch", "1", *arguments, hyperparameters={"batch": 1}, batch=order)


def job_of(root: Path, *runs: dict[str, Any]) -> SharedJob:
    return SharedJob(root=root, runs=runs, programs=(PROGRAM,))


def measured_batch(job: SharedJob, run_id: str = "a", job_name: str = "job-a1") -> int:
    """The samples of the steps in the run's own log."""
    (path,) = (job.folder() / run_id / "step_log" / job_name).glob("rank-*.jsonl")
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    (samples,) = {line["samples"] for line in lines if line["kind"] == "step"}
    return int(samples)


@pytest.mark.parametrize(("first", "room", "found"), [(24, 37, 37), (24, 14, 14), (1, 1, 1)])
def test_the_largest_batch_is_found_within_one_probe(tmp_path: Path, first: int, room: int, found: int) -> None:
    job = job_of(tmp_path, searching(first, "--room", str(room)))
    exit_code, output = job.carry()
    assert exit_code == 0, output
    end = job.end("a")
    assert end is not None
    assert (end["reason"], end["exit_code"], end["batch"]["batch"]) == ("exited", 0, found)
    assert measured_batch(job) == found
    probes = end["batch"]["probes"]
    assert len(probes) <= MOST_PROBES
    for probe in probes:
        assert probe["fits"] is (probe["batch"] <= room)
        assert probe["peak_bytes"] == (probe["batch"] * SAMPLE_BYTES if probe["fits"] else None)
        assert (probe["samples_per_second"] is not None) is probe["fits"]
    assert not [path for path in (tmp_path / "algo-1").rglob("*-batch-*") if path.is_dir()], "a probe left a folder"
    # The file of the end, whose bytes the lab checks, names the run's own files only.
    assert all(name.startswith("a/step_log/") for name in end["files"])


def test_the_best_batch_is_the_fitting_one_with_the_highest_rate(tmp_path: Path) -> None:
    job = job_of(tmp_path, searching(4, "--room", "20", "--slow-from", "10", choice=BEST))
    job.carry()
    end = job.end("a")
    assert end is not None
    assert end["batch"]["batch"] == measured_batch(job) == 8


def test_a_run_that_fails_otherwise_ends_the_search_and_fails(tmp_path: Path) -> None:
    job = job_of(tmp_path, searching(4, "--breaks-from", "2"), searching(4, "--room", "0", run_id="b"))
    job.carry()
    broken, tiny = job.end("a"), job.end("b")
    assert broken is not None
    assert tiny is not None
    assert (broken["exit_code"], broken["batch"]) == (1, {"batch": 4, "probes": []})
    assert "the batch is odd" in broken["failure"]
    # Not even one sample fits: the run shows it.
    assert (tiny["exit_code"], [probe["fits"] for probe in tiny["batch"]["probes"]]) == (1, [False] * 3)
    assert "MemoryError" in tiny["failure"]


def test_the_next_attempt_goes_on_with_the_probes_of_the_earlier_one(tmp_path: Path) -> None:
    job = job_of(tmp_path, searching(24, "--room", "37"))
    job.carry()
    first = job.end("a")
    assert first is not None
    for path in (job.folder() / "a" / "ended" / "job-a1").iterdir():
        path.unlink()  # as if the host had been lost before the end was written
    job.carry("job-a2")
    second = job.end("a", "job-a2")
    assert second is not None
    assert second["batch"] == first["batch"]
    assert "probed" not in [event for event, _, _ in job.events("job-a2")]
