"""What a parent's guard does for a parent that was stopped, and what a parent removes of those that
were killed.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from traindyno.parent import program

STOPPED_PARENT = """
import os, signal, sys
from traindyno.parent.program import under_guard

def work():
    for number in (signal.SIGSTOP, signal.SIGTSTP):
        os.kill(os.getpid(), number)
    return 7

sys.exit(under_guard(work))
"""


def test_a_parent_that_a_run_has_stopped_is_continued() -> None:
    assert (
        subprocess.run([sys.executable, "-c", STOPPED_PARENT], timeout=30, check=False).returncode
        == 7
    )


def test_a_parent_removes_the_folders_of_those_that_are_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    for name in (
        f"traindyno-{ended.pid}-a",
        f"traindyno-{os.getpid()}-b",
        "traindyno-of-a-person",
        "other-1-c",
    ):
        (tmp_path / name / "run").mkdir(parents=True)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    program.remove_folders_of_dead_parents()
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {f"traindyno-{os.getpid()}-b", "traindyno-of-a-person", "other-1-c"}


def test_the_folder_of_a_guard_that_is_killed_has_its_process_id(tmp_path: Path) -> None:
    """The parent of the next job finds it by that."""
    code = (
        "import os; from traindyno.parent import program; program.work = lambda _: "
        "os.kill(os.getppid(), 9) or 0; "
    )
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    killed = subprocess.Popen([sys.executable, "-c", f"{code}program.main()"], env=environment)
    assert killed.wait(timeout=30) == -signal.SIGKILL
    (left,) = tmp_path.iterdir()
    assert left.name.startswith(f"traindyno-{killed.pid}-")
