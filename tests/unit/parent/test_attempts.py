"""Runs that have ended are skipped by the next attempt; what a job leaves, goes on.

None begins that would not fit.
"""

import json
import os
import signal
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.unit.parent.shared_job import SharedJob, children_of, is_alive, run_document, wait_until
from traindyno.core.jobs.journal_format import LEFT_REASONS, TORCHRUN_VARIABLE
from traindyno.parent.attempt import TimeLeft
from traindyno.parent.document import JobOrder
from traindyno.parent.ends import EndVerdict, whole_ends

PATIENT = {"grace_seconds": 20}
CHECKPOINTS = {"TRAINDYNO_CHECKPOINT_DIRECTORY": "/opt/ml/checkpoints/state"}
# As torchrun does: a stop goes to its process, which counts how often it comes.
TORCHRUN = """
import signal, subprocess, sys
rank = subprocess.Popen([sys.executable, *sys.argv[sys.argv.index("train.py"):]])
signal.signal(signal.SIGTERM, lambda *_: rank.send_signal(signal.SIGTERM))
sys.exit(rank.wait())
"""
DAMAGES: dict[str, Callable[[Path, Path], object]] = {
    "log shorter": lambda log, _end: log.write_text("be"),
    "log other": lambda log, _end: log.write_text(log.read_text().upper()),
    "log gone": lambda log, _end: log.unlink(),
    "end cut off": lambda _log, end: end.write_text(end.read_text()[:-20]),
    "end empty": lambda _log, end: end.write_text(""),
    "end of another run": lambda _log, end: end.write_text(end.read_text().replace('"a"', '"b"')),
    "end of a later version": lambda _log, end: end.write_text(
        end.read_text().replace('"version": 1', '"version": 2')
    ),
    "end of two hosts": lambda _log, end: end.write_text(
        json.dumps({**json.loads(end.read_text()), "hosts": ["algo-1", "algo-2"]})
    ),
}
ORDER = JobOrder("j1", "train.py", "local.cpu", 1000.0, None, 100.0, ())


def has_ended(job: SharedJob) -> bool:
    return any(True for _ in whole_ends(job.folder(), "a"))


def sleeps(job: SharedJob, run_id: str, job_name: str = "job-a1") -> bool:
    return "sleeps" in job.log(run_id, job_name)


def test_the_jobs_deadline_ends_its_first_run_and_leaves_the_others(tmp_path: Path) -> None:
    runs = [run_document("a"), run_document("b", "--sleep", "600"), run_document("c")]
    job = SharedJob(root=tmp_path, runs=runs[:1])
    assert job.carry()[0] == 0
    # With the whole job for itself, a run has no further attempt.
    job = SharedJob(root=tmp_path, runs=runs, limits={"max_job_seconds": 10, "ending_seconds": 10})
    assert job.carry("job-a2")[0] == 0
    assert job.events("job-a2")[1:] == [
        ("run_skipped", "a", None),
        ("run_began", "b", None),
        ("run_ended", "b", "time_limit"),
        ("run_left", "c", "deadline"),
        ("parent_ended", None, "deadline"),
    ]
    assert job.journal("job-a2")[-2]["began"] is False


def test_a_job_of_the_same_name_in_another_folder_is_let_alone(tmp_path: Path) -> None:
    """A second local cloud on this machine."""
    first, second = (
        SharedJob(root=tmp_path / name, runs=[run_document("a", "--sleep", "1")]) for name in "ab"
    )
    for job in (first, second):
        job.root.mkdir()
    with first.start() as parent:
        wait_until(lambda: sleeps(first, "a"))
        assert second.carry()[0] == 0
        parent.communicate()
    assert [(job.end("a") or {})["exit_code"] for job in (first, second)] == [0, 0]


def test_no_other_user_sees_the_temporary_files_of_any_run(tmp_path: Path) -> None:
    (tmp_path / "tmp").mkdir()
    runs = [run_document("a"), run_document("b", "--sleep", "1")]
    job = SharedJob(root=tmp_path, runs=runs, environment={"TMPDIR": str(tmp_path / "tmp")})
    with job.start() as parent:
        wait_until(lambda: sleeps(job, "b"))
        (folder,) = (tmp_path / "tmp").iterdir()
        assert folder.stat().st_mode & 0o777 == 0o700
        parent.communicate()
    assert not folder.exists()


def test_a_run_ends_at_its_own_limit(tmp_path: Path) -> None:
    job = SharedJob(
        root=tmp_path, runs=[run_document("a", "--sleep", "600")], limits={"max_run_seconds": 1}
    )
    assert job.carry()[0] == 0
    assert job.events()[-2:] == [("run_ended", "a", "time_limit"), ("parent_ended", None, None)]


def test_a_stop_reaching_all_processes_is_no_failure_of_the_run(tmp_path: Path) -> None:
    job = SharedJob(root=tmp_path, runs=[run_document("a", "--sleep", "600")])
    with job.start() as guard:
        wait_until(partial(sleeps, job, "a"))
        (parent,) = children_of(guard.pid)
        for number in [*children_of(parent), parent, guard.pid]:
            os.kill(number, signal.SIGTERM)
        assert guard.wait(60) == 128 + signal.SIGTERM
    assert job.events()[-2:] == [("run_left", "a", "stopped"), ("parent_ended", None, "stopped")]


@pytest.mark.parametrize("launcher", ["process", "torchrun"])
def test_a_process_of_a_run_gets_a_stop_once(tmp_path: Path, launcher: str) -> None:
    torchrun = tmp_path / "torchrun.py"
    torchrun.write_text(TORCHRUN)
    runs = [run_document("a", "--count-stops", "1", "--sleep", "600", launcher=launcher)]
    job = SharedJob(
        root=tmp_path, runs=runs, environment={TORCHRUN_VARIABLE: str(torchrun)}, limits=PATIENT
    )
    job.stop(partial(sleeps, job, "a"))
    assert [line for line in job.log("a") if line == "stop"] == ["stop"]


def test_a_stop_gives_the_run_time_for_a_checkpoint_and_leaves_it(tmp_path: Path) -> None:
    runs = [
        run_document("a"),
        run_document(
            "b",
            "--checkpoint",
            "step-3",
            "--deaf",
            "",
            "--daemon",
            "600",
            "--sleep",
            "600",
            environment=CHECKPOINTS,
        ),
        run_document("c"),
    ]
    job = SharedJob(root=tmp_path, runs=runs)
    job.stop(partial(sleeps, job, "b"))
    assert job.events()[-3:] == [
        ("run_left", "b", "stopped"),
        ("run_left", "c", "stopped"),
        ("parent_ended", None, "stopped"),
    ]
    assert (job.folder() / "b" / "state" / "step-3").exists()
    (daemon,) = (int(line.split()[1]) for line in job.log("b") if line.startswith("daemon"))
    assert not is_alive(daemon)
    assert {reason for event, _, reason in job.events() if event == "run_left"} <= {*LEFT_REASONS}


@pytest.mark.parametrize("which", ["guard", "parent"])
def test_no_process_outlives_a_killed_parent(which: str, tmp_path: Path) -> None:
    (tmp_path / "tmp").mkdir()
    runs = [run_document("a", "--deaf", "", "--daemon", "600", "--sleep", "600")]
    job = SharedJob(root=tmp_path, runs=runs, environment={"TMPDIR": str(tmp_path / "tmp")})
    with job.start() as guard:
        wait_until(partial(sleeps, job, "a"))
        (parent,) = children_of(guard.pid)
        (child,) = (number for number in children_of(parent) if is_alive(number))
        daemon = next(int(line.split()[1]) for line in job.log("a") if line.startswith("daemon"))
        os.kill(guard.pid if which == "guard" else parent, signal.SIGKILL)
        guard.wait(60)
        wait_until(lambda: not any(map(is_alive, (parent, child, daemon))))
    assert list((tmp_path / "tmp").iterdir()) == []
    assert guard.returncode == (-signal.SIGKILL if which == "guard" else 128 + signal.SIGKILL)


def test_a_run_during_two_job_deaths_is_not_started_again(tmp_path: Path) -> None:
    runs = [run_document("a"), run_document("b", "--sleep", "600"), run_document("c")]
    job = SharedJob(root=tmp_path, runs=runs)
    for name in ("job-a1", "job-a2"):
        job.die(name, partial(sleeps, job, "b", name))
    assert job.carry("job-a3")[0] == 0
    assert job.events("job-a3")[1:-1] == [
        ("run_skipped", "a", None),
        ("run_ended", "b", "jobs_died"),
        ("run_began", "c", None),
        ("run_ended", "c", "exited"),
    ]
    assert (job.end("b", "job-a3") or {})["place"] is None


def has_parent_ended(job: SharedJob, name: str) -> bool:
    return bool(job.events(name)[-1][0] == "parent_ended")


@pytest.mark.parametrize("signal_name", ["SIGTERM", "SIGKILL"])
def test_a_run_ending_its_parent_or_guard_is_given_up_and_the_others_go_on(
    signal_name: str, tmp_path: Path
) -> None:
    """SIGTERM to its parent, as scripts end a launcher, and SIGKILL to its guard."""
    striker = ("--strike", signal_name, "--sleep", "600")
    job = SharedJob(
        root=tmp_path, runs=[run_document("a"), run_document("b", *striker), run_document("c")]
    )
    for name in ("job-a1", "job-a2"):
        exit_code, _ = job.carry(name)
        assert exit_code == (143 if signal_name == "SIGTERM" else -9)
        wait_until(partial(has_parent_ended, job, name))
        assert job.events(name)[-3:-1] == [("run_left", run_id, "stopped") for run_id in "bc"]
    assert job.carry("job-a3")[0] == 0
    assert job.events("job-a3")[1:-1] == [
        ("run_skipped", "a", None),
        ("run_ended", "b", "jobs_died"),
        ("run_began", "c", None),
        ("run_ended", "c", "exited"),
    ]


def test_a_run_with_a_stopped_or_restarted_job_has_ended_no_parent(tmp_path: Path) -> None:
    """The lab has stopped the jobs in ``cut_off``; a spot job starts again under its name."""
    job = SharedJob(root=tmp_path, runs=[run_document("a")], limits={"cut_off": ["job-a2"]})
    left = (
        '{"event": "parent_started"}\n{"event": "run_began", "run_id": "a"}\n'
        '{"event": "run_left", "run_id": "a", "reason": "stopped", "began": true}\n'
        '{"event": "parent_ended", "reason": "stopped"}\n'
    )
    restarted = '{"event": "parent_started"}\n{"event": "parent_ended", "reason": null}\n'
    for name, text in (("job-a0", left), ("job-a1", left + restarted), ("job-a2", left)):
        path = job.folder() / "journal" / name / "algo-1.jsonl"
        path.parent.mkdir(parents=True)
        path.write_text(text)
    job.succeed("job-a3")
    assert job.events("job-a3")[1:-1] == [("run_began", "a", None), ("run_ended", "a", "exited")]


def test_ends_forged_by_a_run_skip_no_run_and_change_none(tmp_path: Path) -> None:
    """Of a run that failed before it, of one that comes after it, and of one that is left."""
    runs = [
        run_document("a", "--exit", "3"),
        run_document("b", "--forge-ends", "a c d"),
        run_document("c", "--exit", "4"),
        run_document("d", "--sleep", "600"),
    ]
    job = SharedJob(root=tmp_path, runs=runs)
    job.stop(partial(sleeps, job, "d"))
    assert {run_id: (job.end(run_id) or {})["exit_code"] for run_id in "abc"} == {
        "a": 3,
        "b": 0,
        "c": 4,
    }
    assert job.end("d") is None
    assert ("run_left", "d", "stopped") in job.events()


def test_a_run_cut_off_by_the_jobs_limit_has_not_died(tmp_path: Path) -> None:
    """No signal told the parent, twice: the next attempts' documents name the jobs that the service
    ended.
    """
    runs = [run_document("a"), run_document("b", "--sleep", "600")]
    job = SharedJob(root=tmp_path, runs=runs)
    for name in ("job-a1", "job-a2"):
        job.die(name, partial(sleeps, job, "b", name))
    last = SharedJob(
        root=tmp_path, runs=[run_document("a"), run_document("b")], limits={"cut_off": ["job-a1"]}
    )
    assert last.carry("job-a3")[0] == 0
    assert last.events("job-a3")[1:-1] == [
        ("run_skipped", "a", None),
        ("run_began", "b", None),
        ("run_ended", "b", "exited"),
    ]


def test_a_start_under_the_same_name_is_no_death(tmp_path: Path) -> None:
    """SageMaker starts a spot job's containers again under the job's name."""
    job = SharedJob(root=tmp_path, runs=[run_document("a"), run_document("b")])
    began = '{"event": "parent_started"}\n{"event": "run_began", "run_id": "a"}\n'
    for job_name, host in (("job-a0", "algo-1"), ("job-a1", "algo-1"), ("job-a1", "algo-2")):
        path = job.folder() / "journal" / job_name / f"{host}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(began * 3 + '{"event": "run_be')
    assert job.carry()[0] == 0
    assert {run_id: (job.end(run_id) or {})["reason"] for run_id in ("a", "b")} == {
        "a": "exited",
        "b": "exited",
    }


def test_a_run_with_damaged_files_runs_again(tmp_path: Path) -> None:
    job = SharedJob(root=tmp_path, runs=[run_document("a")])
    assert job.carry()[0] == 0
    log = job.folder() / "a/step_log/job-a1/rank-0.jsonl"
    end = job.folder() / "a/ended/job-a1/algo-1.json"
    whole = log.read_text(), end.read_text()
    assert has_ended(job)
    for name, damage in DAMAGES.items():
        log.write_text(whole[0])
        end.write_text(whole[1])
        damage(log, end)
        assert not has_ended(job), name
    assert job.carry("job-a2")[0] == 0
    assert ("run_ended", "a", "exited") in job.events("job-a2")
    assert has_ended(job)


def test_an_unwritable_end_leaves_the_run_and_no_other(tmp_path: Path) -> None:
    job = SharedJob(root=tmp_path, runs=[run_document("a"), run_document("b")])
    journal = job.folder() / "journal" / "job-a1" / "algo-1.jsonl"
    for folder in (journal.parent, job.folder() / "a"):
        folder.mkdir(parents=True)
    (job.folder() / "a" / "ended").write_text("in the way")
    journal.symlink_to("/dev/full")
    exit_code, output = job.carry()
    assert exit_code == 0
    assert "run_left" in output
    assert "not_recorded" in output
    assert (job.end("b") or {})["exit_code"] == 0


@pytest.mark.parametrize("is_first", [False, True])
@pytest.mark.parametrize("spent_seconds", [0, 500, 899, 901, 5000])
@pytest.mark.parametrize("run_limit", [None, 10.0, 1000.0])
@pytest.mark.parametrize("run_took", [0, 9, 11, 1001])
def test_the_first_reached_limit_decides(
    is_first: bool, spent_seconds: float, run_limit: float | None, run_took: float
) -> None:
    left = TimeLeft(ORDER._replace(max_run_seconds=run_limit), time.time() - spent_seconds)
    verdict = left.verdict(time.monotonic() - run_took, is_first=is_first)
    if run_limit is not None and run_took > run_limit:
        assert verdict == EndVerdict(reason="time_limit")
    elif spent_seconds > 900:
        assert verdict == (
            EndVerdict(reason="time_limit") if is_first else EndVerdict(left="deadline")
        )
    else:
        assert verdict is None


@pytest.mark.parametrize("spent_seconds", [0, 500, 890, 901])
@pytest.mark.parametrize("longest", [0, 20, 450, 890])
def test_a_run_begins_if_the_longest_so_far_would_fit(spent_seconds: float, longest: float) -> None:
    left = TimeLeft(ORDER, time.time() - spent_seconds)
    for seconds in (longest / 2, longest, longest / 3):
        left.took(seconds)
    assert left.fits_another() is (spent_seconds + longest < 900)
