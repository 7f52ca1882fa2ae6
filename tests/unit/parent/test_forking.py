"""Imports are over before a run begins.

Without a process that can fork, a run starts with a new interpreter.
"""

import json
import os
import shutil
import signal
from pathlib import Path
from typing import IO, Any

import pytest

from tests.unit.parent.shared_job import SharedJob, is_alive, run_document, wait_until
from traindyno.parent.document import RunOrder
from traindyno.parent.forking import ForkingLauncher
from traindyno.parent.launch import Meeting, Setting, Start

# They stand for a process whose imports fail, that has opened a device, that dies with a run, that
# answers late, whose imports are slow, and whose imports do not end.
FORKING = {
    "fails": "print('tries'); raise SystemExit('cannot import name')",
    "unfit": """
import os, sys, time
print("tries", flush=True)
os.write(int(sys.argv[1]), b"it has opened a device\\n")
time.sleep(600)
""",
    "dies": (
        "import os, sys; os.write(int(sys.argv[1]), b'ready\\n'); sys.stdin.readline(); "
        "os.kill(os.getpid(), 9)"
    ),
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
    "slow": """
import json, os, sys, time
time.sleep(0.5)
with open("imported", "a") as file:
    file.write(f"{time.time()}\\n")
os.write(int(sys.argv[1]), b"ready\\n")
for line in sys.stdin:
    order = json.loads(line)
    with open("orders", "a") as file:
        file.write(order["environment"]["TRAINDYNO_SHARED_JOB"] + "\\n")
    os.write(int(sys.argv[1]), f"{order['number']} 0\\n".encode())
""",
    "endless": "import time; print('imports', flush=True); time.sleep(600)",
}


def forking_job(root: Path, forking: str, *runs: dict[str, Any], **limits: float) -> SharedJob:
    train = root / "traindyno_train.py"
    ranks = root / "traindyno_ranks.py"
    shutil.copy(Path(__file__).with_name("train.py"), train)
    ranks.write_text(FORKING[forking])
    return SharedJob(root=root, runs=runs, programs=(train, ranks), limits=limits)


def carried(root: Path, forking: str) -> tuple[SharedJob, str]:
    asks = ("--shared-job", "")
    job = forking_job(
        root, forking, run_document("a", "--print", "began", *asks), run_document("b", *asks)
    )
    exit_code, output = job.carry()
    assert exit_code == 0, output
    return job, output


@pytest.mark.parametrize("forking", ["fails", "unfit"])
def test_without_a_forking_process_runs_start_as_ever(forking: str, tmp_path: Path) -> None:
    job, output = carried(tmp_path, forking)
    assert output.count("tries") == 1
    for place, run_id in enumerate(("a", "b"), start=1):
        end = job.end(run_id) or {}
        (began, said) = job.log(run_id)
        assert (end["exit_code"], end["leftovers"]["processes"], began) == (0, 0, "began")
        assert json.loads(said) == {"place": place, "forked": False}


def test_imports_are_over_before_a_run_begins(tmp_path: Path) -> None:
    """Also those of a later run, whose libraries read another variable when they are imported."""
    other = run_document("c", environment={"OMP_NUM_THREADS": "3"})
    job = forking_job(tmp_path, "slow", run_document("a"), run_document("b"), other)
    job.succeed()
    moments = [(line["time"], line["event"], line.get("run_id")) for line in job.journal()[1:-1]]
    moments += [
        (float(text), "imported", None)
        for text in (tmp_path / "code" / "imported").read_text().split()
    ]
    assert [(event, run_id) for _, event, run_id in sorted(moments)] == [
        ("imported", None),
        *[(event, run_id) for run_id in ("a", "b") for event in ("run_began", "run_ended")],
        ("imported", None),
        ("run_began", "c"),
        ("run_ended", "c"),
    ]
    orders = (tmp_path / "code" / "orders").read_text().splitlines()
    assert list(map(json.loads, orders)) == [
        {"place": place, "forked": True} for place in (1, 2, 3)
    ]


def test_a_run_with_stopped_imports_has_not_begun(tmp_path: Path) -> None:
    job = forking_job(tmp_path, "endless", run_document("a"))
    log = tmp_path / "algo-1" / "output" / "data" / "logs" / "a.algo-1.log"
    job.stop(lambda: log.exists() and "imports" in log.read_text())
    assert job.events()[1:] == [("run_left", "a", "stopped"), ("parent_ended", None, "stopped")]
    assert job.journal()[1]["began"] is False


def test_no_run_waits_for_imports_beyond_the_jobs_deadline(tmp_path: Path) -> None:
    job = forking_job(tmp_path, "endless", run_document("a", "--sleep", "600"), max_job_seconds=10)
    assert job.carry()[0] == 0
    assert job.events()[1:-1] == [("run_began", "a", None), ("run_ended", "a", "time_limit")]


def test_a_run_ends_with_its_forking_process(tmp_path: Path) -> None:
    job, _ = carried(tmp_path, "dies")
    assert [(job.end(run_id) or {})["signal"] for run_id in ("a", "b")] == [9, 9]


def start_in(folder: Path, forking: str, output: IO[bytes]) -> Start:
    (folder / "traindyno_ranks.py").write_text(FORKING[forking])
    run = RunOrder(**run_document("a"))
    return Start(
        setting=Setting(run, "traindyno_train.py", dict(os.environ), output.fileno()),
        arguments=(),
        meeting=Meeting(hosts=1, rank=0, address="127.0.0.1", port=1, name="a"),
        is_forked=True,
    )


def test_overlong_imports_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No later run waits for them again."""
    monkeypatch.chdir(tmp_path)
    launcher = ForkingLauncher()
    answers = iter([True, True, False])
    with (tmp_path / "output").open("wb") as output:
        setting = start_in(tmp_path, "endless", output).setting
        assert not launcher.make_ready(setting, lambda: next(answers))
        (source,) = launcher.kept
        assert not is_alive(source)
        assert not launcher.make_ready(setting, lambda: pytest.fail("it waits again"))


def test_the_answer_to_an_earlier_run_is_not_the_next_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that was killed is answered late."""
    monkeypatch.chdir(tmp_path)
    launcher = ForkingLauncher()
    with (tmp_path / "output").open("wb") as output:
        start = start_in(tmp_path, "late", output)
        assert launcher.make_ready(start.setting, lambda: True)
        killed = launcher.start(start)
        wait_until(lambda: killed.poll() is None and (tmp_path / "asked").exists())
        later = launcher.start(start)
        wait_until(lambda: later.poll() is not None)
    assert later.poll() == 0
    (source,) = launcher.kept
    os.kill(source, signal.SIGKILL)
