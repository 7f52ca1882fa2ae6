"""A run ends as its processes end, and the next one begins on a clean host, with folders of its
own.
"""

import os
import signal
from pathlib import Path

import pytest

from tests.unit.parent.shared_job import SharedJob, is_alive, run_document
from traindyno.parent.output import RunOutput

RUNS = [
    run_document(
        "completes",
        "--checkpoint",
        "step-1",
        environment={"TRAINDYNO_CHECKPOINT_DIRECTORY": "/opt/ml/x"},
    ),
    run_document("exits", "--print", "what happened", "--exit", "3"),
    run_document("fails", "--fail", "traindyno-outcome: loss_diverged: loss is nan"),
    run_document("killed", "--kill", str(int(signal.SIGKILL))),
    run_document("leaves", "--daemon", "600", "--shared-memory", "../shm/left"),
    run_document("last", "--launcher", ""),
]
ENDS = {
    "completes": ("exited", 0, None, None),
    "exits": ("exited", 3, None, "what happened\ufffd\ufffd Error"),
    "fails": ("exited", 1, None, "traindyno-outcome: loss_diverged: loss is nan"),
    "killed": ("exited", None, int(signal.SIGKILL), None),
    "leaves": ("exited", 0, None, None),
    "last": ("exited", 0, None, None),
}
Carried = tuple[SharedJob, int, str]
SHOWN_BYTES = 256 * 1024
LINE = b"step 1 of 10, loss 0.5\n"


@pytest.fixture(scope="module")
def carried(tmp_path_factory: pytest.TempPathFactory) -> Carried:
    root = tmp_path_factory.mktemp("job")
    shared_memory = root / "shm"
    shared_memory.mkdir()
    (shared_memory / "of-another").write_bytes(b"x")
    environment = {"TRAINDYNO_SHARED_MEMORY": str(shared_memory)}
    job = SharedJob(root=root, runs=RUNS, environment=environment)
    return (job, *job.carry())


def test_the_parent_succeeds_however_its_runs_end(carried: Carried) -> None:
    job, exit_code, output = carried
    assert exit_code == 0, output
    begun = [run_id for event, run_id, _ in job.events() if event == "run_began"]
    ended = [run_id for event, run_id, _ in job.events() if event == "run_ended"]
    assert begun == ended == [run["run_id"] for run in RUNS]
    assert job.events()[-1] == ("parent_ended", None, None)


@pytest.mark.parametrize("run_id", ENDS)
def test_an_end_says_how_the_processes_ended(carried: Carried, run_id: str) -> None:
    end = carried[0].end(run_id)
    assert end is not None
    assert (end["reason"], end["exit_code"], end["signal"], end["failure"]) == ENDS[run_id]
    assert end["place"] == list(ENDS).index(run_id) + 1
    assert 0 < end["own_milliseconds"] <= round((end["ended_at"] - end["began_at"]) * 1e3) + 50


def test_leftovers_are_ended_and_counted(carried: Carried) -> None:
    job, *_ = carried
    left = {run_id: (job.end(run_id) or {})["leftovers"] for run_id in ENDS}
    assert {run_id for run_id, rest in left.items() if rest["processes"]} == {"leaves"}
    assert left["leaves"] == {"processes": 1, "shared_memory": 1, "device_mebibytes": 0}
    assert [path.name for path in (job.root / "shm").iterdir()] == ["of-another"]
    (daemon,) = (int(line.split()[1]) for line in job.log("leaves") if line.startswith("daemon"))
    assert not is_alive(daemon)


def test_an_ended_run_keeps_its_log_and_not_its_checkpoints(carried: Carried) -> None:
    job, *_ = carried
    assert (job.end("completes") or {})["files"].keys() == {
        "completes/step_log/job-a1/rank-0.jsonl"
    }
    assert job.log("completes") == ["began"]
    assert not (job.folder() / "completes" / "state").exists()
    assert not (job.root / "algo-1" / "output" / "failure").exists()


def test_output_has_the_runs_name_and_no_word_slowing_the_toolkit(carried: Carried) -> None:
    output = carried[2]
    assert "[exits] what happened\ufffd\ufffd Err-or" in output.splitlines()
    assert "Error" not in output


def test_a_runs_start_counts_from_its_own_launcher(carried: Carried) -> None:
    """The parent has run other runs before."""
    assert carried[0].log("last") == ["began", "launched None"]


def test_a_run_finds_its_folders_empty_and_only_results_stay(tmp_path: Path) -> None:
    (tmp_path / "tmp").mkdir()
    runs = [run_document("a", "--leave", "of-a"), run_document("b", "--leave", "of-b")]
    job = SharedJob(root=tmp_path, runs=runs, environment={"TMPDIR": str(tmp_path / "tmp")})
    job.succeed()
    names = ("TMPDIR", "TORCHINDUCTOR_CACHE_DIR", "SM_MODEL_DIR", "SM_OUTPUT_DATA_DIR")
    for run_id in ("a", "b"):
        assert job.log(run_id) == ["began", *(f"{name} 0" for name in names)]
    left = (path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("of-*"))
    assert sorted(left) == [
        f"algo-1/{kept}/{run}/of-{run}" for kept in ("model", "output/data") for run in ("a", "b")
    ]


@pytest.mark.parametrize("kibibytes", [1, 255, 300, 2000])
def test_output_is_shown_in_part_and_logged_whole(
    kibibytes: int, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    output = RunOutput(tmp_path / "a.log", "a")
    text = LINE * (kibibytes * 1024 // (len(LINE) + len("[a] ")))
    for part in (text[:100], text[100:]):
        descriptor = output.open()
        os.write(descriptor, part)
        os.close(descriptor)
        output.show_new()
    output.finish()
    shown = capsysbinary.readouterr().out
    assert (tmp_path / "a.log").read_bytes() == text
    assert len(shown) <= SHOWN_BYTES + 100
    if kibibytes <= SHOWN_BYTES // 1024:
        assert shown == text.replace(b"step", b"[a] step")
    else:
        assert shown.endswith(b"more than this is in a.log of the job's output\n")
