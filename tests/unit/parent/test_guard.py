"""What a parent's guard does for a parent that was stopped, and what a parent removes."""

import subprocess
import sys
from pathlib import Path

from tests.unit.parent.shared_job import SharedJob, run_document

STOPPED_PARENT = """
import os, signal, sys
from traindyno.parent.program import under_guard

def work():
    for number in (signal.SIGSTOP, signal.SIGTSTP):
        os.kill(os.getpid(), number)
    return 7

sys.exit(under_guard(work))
"""


def test_a_parent_stopped_by_a_run_is_continued() -> None:
    assert (
        subprocess.run([sys.executable, "-c", STOPPED_PARENT], timeout=30, check=False).returncode
        == 7
    )


def test_a_parent_removes_no_folder_made_by_others(tmp_path: Path) -> None:
    """Names like those of a person's files, and of other parents that are gone or alive."""
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    names = {
        f"traindyno-{ended.pid}-a",
        "traindyno-99999-11-results",
        "traindyno-2026-11-28-results",
        "r-of-a-person",
    }
    for name in names:
        (tmp_path / name / "run").mkdir(parents=True)
    job = SharedJob(
        root=tmp_path / "job", runs=[run_document("a")], environment={"TMPDIR": str(tmp_path)}
    )
    job.root.mkdir()
    job.succeed()
    assert {path.name for path in tmp_path.iterdir()} == {*names, "job"}
