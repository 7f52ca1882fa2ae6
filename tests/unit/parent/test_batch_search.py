"""The largest batch that fits a limited memory is found by real processes, and the run is measured
with it.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.unit.parent.filling import SAMPLE_BYTES
from tests.unit.parent.shared_job import SharedJob, run_document
from tests.unit.run_samples import known
from traindyno.core.search.largest_batch import BEST, LARGEST, MOST_PROBES

PROGRAM = Path(__file__).with_name("filling.py")


def searching(
    first: int, *arguments: str, choice: str = LARGEST, run_id: str = "a"
) -> dict[str, Any]:
    order = {"choice": choice, "first": first, "step": 1, "path": ["batch"]}
    return run_document(
        run_id, "--batch", "1", *arguments, hyperparameters={"batch": 1}, batch=order
    )


def job_of(root: Path, *runs: dict[str, Any]) -> SharedJob:
    return SharedJob(root=root, runs=runs, programs=(PROGRAM,))


def measured_batch(job: SharedJob, run_id: str = "a", job_name: str = "job-a1") -> int:
    """The samples of the steps in the run's own log."""
    (path,) = (job.folder() / run_id / "step_log" / job_name).glob("rank-*.jsonl")
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    (samples,) = {line["samples"] for line in lines if line["kind"] == "step"}
    return int(samples)


@pytest.mark.parametrize(("first", "room", "batch"), [(24, 37, 37), (24, 14, 14), (1, 1, 1)])
def test_the_largest_batch_is_found_within_one_probe(
    tmp_path: Path, first: int, room: int, batch: int
) -> None:
    job = job_of(tmp_path, searching(first, "--room", str(room)))
    job.succeed()
    end = known(job.end("a"))
    assert (end["reason"], end["exit_code"], end["batch"]["batch"]) == ("exited", 0, batch)
    assert measured_batch(job) == batch
    probes = end["batch"]["probes"]
    assert len(probes) <= MOST_PROBES
    for probe in probes:
        assert probe["fits"] is (probe["batch"] <= room)
        assert probe["peak_bytes"] == (probe["batch"] * SAMPLE_BYTES if probe["fits"] else None)
        assert (probe["samples_per_second"] is not None) is probe["fits"]
    assert not [path for path in (tmp_path / "algo-1").rglob("*-batch-*") if path.is_dir()], (
        "a probe left a folder"
    )
    # The file of the end, whose bytes the lab checks, names the run's own files only.
    assert all(name.startswith("a/step_log/") for name in end["files"])


def test_a_batch_with_allocator_retries_is_not_measured(tmp_path: Path) -> None:
    job = job_of(tmp_path, searching(24, "--room", "37", "--retries-from", "26"))
    job.succeed()
    end = known(job.end("a"))
    assert end["batch"]["batch"] == measured_batch(job) == 25
    told = {probe["batch"]: (probe["fits"], probe["retries"]) for probe in end["batch"]["probes"]}
    assert all(probe == (batch < 26, 2 * (26 <= batch <= 37)) for batch, probe in told.items())
    assert told[36] == (False, 2)


def test_only_batches_keeping_the_global_batch_are_probed(tmp_path: Path) -> None:
    """48 samples on 2 replicas: 37 would fit, and 24 divides."""
    possible = [1, 2, 3, 4, 6, 8, 12, 24]
    run = searching(9, "--room", "37")
    job = job_of(tmp_path, {**run, "batch": {**run["batch"], "possible": possible}})
    job.succeed()
    end = known(job.end("a"))
    assert end["batch"]["batch"] == measured_batch(job) == 24
    assert [probe["batch"] for probe in end["batch"]["probes"]] == [8, 12, 24]


def test_the_best_batch_is_the_fastest_fitting_one(tmp_path: Path) -> None:
    job = job_of(tmp_path, searching(4, "--room", "20", "--slow-from", "10", choice=BEST))
    job.carry()
    end = known(job.end("a"))
    assert end["batch"]["batch"] == measured_batch(job) == 8


def test_a_run_failing_otherwise_ends_the_search_and_fails(tmp_path: Path) -> None:
    job = job_of(
        tmp_path, searching(4, "--breaks-from", "2"), searching(4, "--room", "0", run_id="b")
    )
    job.carry()
    broken = job.end("a")
    tiny = job.end("b")
    assert broken is not None
    assert tiny is not None
    assert (broken["exit_code"], broken["batch"]) == (1, {"batch": 4, "probes": []})
    assert "the batch is odd" in broken["failure"]
    # Not even one sample fits: the run shows it.
    assert (tiny["exit_code"], [probe["fits"] for probe in tiny["batch"]["probes"]]) == (
        1,
        [False] * 3,
    )
    assert "MemoryError" in tiny["failure"]


def test_a_larger_batch_failing_otherwise_leaves_the_fitting_one(tmp_path: Path) -> None:
    """Such as one that is larger than the data: no probe tells whether its memory would do."""
    job = job_of(tmp_path, searching(4, "--breaks-from", "8"))
    assert job.carry()[0] == 0
    end = known(job.end("a"))
    assert [(probe["batch"], probe["fits"]) for probe in end["batch"]["probes"]] == [(4, True)]
    assert (end["exit_code"], end["batch"]["batch"]) == (0, 4)
    assert measured_batch(job) == 4


def test_the_next_attempt_goes_on_with_the_probes_of_the_earlier_one(tmp_path: Path) -> None:
    job = job_of(tmp_path, searching(24, "--room", "37"))
    job.carry()
    first = known(job.end("a"))
    for path in (job.folder() / "a" / "ended" / "job-a1").iterdir():
        path.unlink()  # as if the host had been lost before the end was written
    job.carry("job-a2")
    second = known(job.end("a", "job-a2"))
    assert second["batch"] == first["batch"]
    assert "probed" not in [event for event, _, _ in job.events("job-a2")]


def write_journal(
    job: SharedJob, job_name: str, *lines: dict[str, Any], host: str = "algo-1"
) -> None:
    path = job.folder(host) / "journal" / job_name / f"{host}.jsonl"
    path.parent.mkdir(parents=True)
    started = {"event": "parent_started"}
    path.write_text("".join(json.dumps(line) + "\n" for line in (started, *lines)))


@pytest.mark.parametrize(("deaths", "batch"), [(1, 24), (2, 23)])
def test_a_batch_of_two_dead_jobs_does_not_fit(tmp_path: Path, deaths: int, batch: int) -> None:
    """The run has not died: it had not begun.

    A host that is lost once says nothing of the batch.
    """
    job = job_of(tmp_path, searching(24, "--room", "24"))
    begun = {"event": "probe_began", "run_id": "a", "batch": 24}
    for number in range(deaths):
        write_journal(job, f"job-a{number}", begun)
    # Spot started this job again under its own name: no death.
    write_journal(job, "job-a2", begun)
    job.succeed("job-a2")
    end = job.end("a", "job-a2") or {}
    assert (end["reason"], end["batch"]["batch"]) == ("exited", batch)
    died = {
        "batch": 24,
        "fits": False,
        "peak_bytes": None,
        "samples_per_second": None,
        "retries": 0,
    }
    assert (died in end["batch"]["probes"]) is (deaths == 2)


def with_limit(job: SharedJob, seconds: int) -> SharedJob:
    return replace(job, limits={"max_job_seconds": seconds, "ending_seconds": 0})


@pytest.mark.parametrize("hangs_from", [1, 8])
def test_probes_reaching_the_jobs_deadline_leave_the_run(tmp_path: Path, hangs_from: int) -> None:
    """A job in which not even one probe ended has a limit that is too short for any: its run shows
    that.
    """
    job = with_limit(job_of(tmp_path, searching(4, "--hangs-from", str(hangs_from))), 7)
    assert job.carry()[0] == 0
    if hangs_from == 1:
        assert (job.end("a") or {})["reason"] == "time_limit"
    else:
        assert job.end("a") is None
        assert ("run_left", "a", "deadline") in job.events()
        assert job.journal()[-2]["began"] is True


def test_a_run_with_probes_as_long_as_its_job_has_the_next_job_for_itself(tmp_path: Path) -> None:
    job = with_limit(job_of(tmp_path, searching(1, "--room", "1", "--goes-on", "600")), 10)
    assert job.carry()[0] == 0
    assert job.events()[-2] == ("run_left", "a", "deadline")
    assert job.carry("job-a2")[0] == 0
    end = job.end("a", "job-a2") or {}
    assert (end["reason"], end["batch"]["batch"]) == ("time_limit", 1)
