"""A run starts with a new interpreter where the process that forks can't, and an old answer is not its own."""

import shutil
from pathlib import Path

import pytest

from tests.unit.parent.shared_job import SharedJob, run_document

# They stand for a process whose imports fail, that has opened a device, that dies with a run, and that answers late.
FORKING = {
    "fails": "raise SystemExit('cannot import name')",
    "unfit": "import os, sys, time; os.write(int(sys.argv[1]), b'it has opened a device\\n'); time.sleep(600)",
    "dies": "import os, sys; os.write(int(sys.argv[1]), b'ready\\n'); sys.stdin.readline(); os.kill(os.getpid(), 9)",
    "late": """
import os, sys
answers = int(sys.argv[1])
os.write(answers, b"ready\\n")
sys.stdin.readline(), sys.stdin.readline()
os.write(answers, b"1 7\\n2 0\\n")
sys.stdin.readline()
""",
}


def carried(root: Path, forking: str, **limits: float) -> SharedJob:
    train, ranks = root / "traindyno_train.py", root / "traindyno_ranks.py"
    shutil.copy(Path(__file__).with_name("train.py"), train)
    ranks.write_text(FORKING[forking])
    runs = [run_document("a", "--print", "began"), run_document("b")]
    job = SharedJob(root=root, runs=runs, programs=(train, ranks), limits=limits)
    exit_code, output = job.carry()
    assert exit_code == 0, output
    return job


@pytest.mark.parametrize("forking", ["fails", "unfit"])
def test_without_a_process_that_can_fork_runs_start_as_ever(forking: str, tmp_path: Path) -> None:
    job = carried(tmp_path, forking)
    for run_id in ("a", "b"):
        end = job.end(run_id) or {}
        assert (end["exit_code"], end["leftovers"]["processes"], job.log(run_id)) == (0, 0, ["began"])


def test_a_run_ends_with_the_process_that_forked_it(tmp_path: Path) -> None:
    job = carried(tmp_path, "dies")
    assert [(job.end(run_id) or {})["signal"] for run_id in ("a", "b")] == [9, 9]


def test_the_answer_to_an_earlier_run_is_not_the_next_ones(tmp_path: Path) -> None:
    job = carried(tmp_path, "late", max_run_seconds=2)
    ends = [job.end(run_id) or {} for run_id in ("a", "b")]
    assert [(end["reason"], end["exit_code"]) for end in ends] == [("time_limit", None), ("exited", 0)]
