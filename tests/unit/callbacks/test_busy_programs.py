"""Which programs of the host are named: other work's, by name alone, and only what Linux shows."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from localcloud.daemons import PART
from traindyno.callbacks import busy_programs
from traindyno.callbacks.busy_programs import LOCAL_SERVICE, Seen, busiest_programs, list_processes
from traindyno.callbacks.log import StepLogger

WORKS = "import time\nwhile time.process_time() < 0.2: pass\nprint('worked', flush=True)\ninput()"
SECRET = "--token=hunter2"


@contextmanager
def working(folder: Path, name: str, **environment: str) -> Iterator[None]:
    """A program of this name that has used a fifth of a second of CPU time."""
    program = folder / name
    program.symlink_to(sys.executable)
    command = [str(program), "-c", WORKS, SECRET]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == b"worked\n"
        yield
        process.stdin.write(b"\n")
        process.stdin.flush()


@pytest.fixture(autouse=True)
def all_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Others may be busier on the machine of the tests."""
    monkeypatch.setattr(busy_programs, "MOST_PROGRAMS", 1000)
    monkeypatch.setattr(busy_programs, "LEAST_SHARE", 0.0)
    monkeypatch.setenv("TRAINING_JOB_NAME", "job-1")


def test_other_programs_are_named_and_the_jobs_own_are_not(tmp_path: Path) -> None:
    log = StepLogger(str(tmp_path))
    log.open()
    with (
        working(tmp_path, "other"),
        working(tmp_path, "own", TRAINING_JOB_NAME="job-1"),
        working(tmp_path, "ministack", **{PART: "home:ministack:1"}),
    ):
        log.close()
    (path,) = tmp_path.rglob("*.jsonl")
    (load,) = [line for line in map(json.loads, path.read_text().splitlines()) if line["kind"] == "host_load"]
    assert load["programs"]["other"] >= 0.15
    assert load["programs"]["the local cloud"] >= 0.15
    assert not {"own", "ministack"} & load["programs"].keys()
    assert "hunter2" not in path.read_text()


def test_a_program_that_used_little_is_not_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = list_processes()
    with working(tmp_path, "other"):
        found = busiest_programs(before, 0.0)
        assert found is not None
        assert "other" in found
        monkeypatch.setattr(busy_programs, "LEAST_SHARE", 1e9)
        assert busiest_programs(before, 1.0) == {}


def test_without_a_job_or_the_kernels_files_programs_are_unknown(tmp_path: Path) -> None:
    assert list_processes(str(tmp_path)) == {}
    assert busiest_programs({}, 1.0) is None
    assert busiest_programs(list_processes(), 1.0, {}) is None


def test_ended_children_count_for_their_parent_without_their_earlier_time() -> None:
    # make's compilers took 4 s: 9 s of the one that had 7 s already, and 2 s of new ones. The shell did nothing.
    before = {(1, 10): Seen(0, "sh", 1.0), (2, 11): Seen(1, "make", 3.0), (3, 12): Seen(2, "cc1", 7.0)}
    after = {(1, 10): Seen(0, "sh", 1.0), (2, 11): Seen(1, "make", 14.0), (3, 99): Seen(1, "new", 0.5)}
    assert busy_programs._used(before, after) == {(1, "sh"): 0.0, (2, "make"): 4.0, (3, "new"): 0.5}


def test_the_local_clouds_mark_is_the_one_that_its_services_have() -> None:
    assert f"{PART}=".encode() == LOCAL_SERVICE
