"""A run starts with a new interpreter where the process that forks can't, and an old answer is not its own."""

import os
import shutil
import signal
from pathlib import Path

import pytest

from tests.unit.parent.shared_job import SharedJob, run_document, wait_until
from traindyno.parent.document import RunOrder
from traindyno.parent.forking import ForkingLauncher
from traindyno.parent.launch import Meeting, Start

# They stand for a process whose imports fail, that has opened a device, that dies with a run, and that answers late.
FORKING = {
    "fails": "raise SystemExit('cannot import name')",
    "unfit": "import os, sys, time; os.write(int(sys.argv[1]), b'it has opened a device\\n'); time.sleep(600)",
    "dies": "import os, sys; os.write(int(sys.argv[1]), b'ready\\n'); sys.stdin.readline(); os.kill(os.getpid(), 9)",
    "late": """
import os, sys
answers = int(sys.argv[1])
os.write(answers, b"ready\\n")
sys.stdin.readline()
open("asked", "w").close()
sys.stdin.readline()
os.write(answers, b"1 7\\n2 0\\n")
sys.stdin.readline()
""",
}


def carried(root: Path, forking: str) -> SharedJob:
    train, ranks = root / "traindyno_train.py", root / "traindyno_ranks.py"
    shutil.copy(Path(__file__).with_name("train.py"), train)
    ranks.write_text(FORKING[forking])
    runs = [run_document("a", "--print", "began"), run_document("b")]
    job = SharedJob(root=root, runs=runs, programs=(train, ranks))
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


def test_the_answer_to_an_earlier_run_is_not_the_next_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that was killed is answered late."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "traindyno_ranks.py").write_text(FORKING["late"])
    launcher = ForkingLauncher()
    with (tmp_path / "output").open("wb") as output:
        start = Start(
            run=RunOrder(**run_document("a")),
            program="traindyno_train.py",
            arguments=(),
            environment=dict(os.environ),
            output=output.fileno(),
            meeting=Meeting(hosts=1, rank=0, address="127.0.0.1", port=1, name="a"),
        )
        killed = launcher.start(start)
        wait_until(lambda: killed.poll() is None and (tmp_path / "asked").exists())
        later = launcher.start(start)
        wait_until(lambda: later.poll() is not None)
    assert later.poll() == 0
    (source,) = launcher.kept
    os.kill(source, signal.SIGKILL)
