"""No run begins before the device is free; what a living process uses stays."""

import mmap
import os
import time
from functools import partial
from pathlib import Path

import pytest

from tests.unit.parent.shared_job import SharedJob, run_document
from traindyno.parent.disk import append, write_last
from traindyno.parent.host import Host
from traindyno.parent.leftovers import Devices, remove_shared_memory, shared_memory


def nvidia_smi(folder: Path) -> Path:
    """A program that prints the numbers of a file, one for each device."""
    (folder / "used").write_text("10\n20\n")
    program = folder / "nvidia-smi"
    program.write_text(f"#!/bin/sh\ncat {folder}/used\n")
    program.chmod(0o755)
    return program


def test_a_device_is_free_with_the_memory_of_the_start(tmp_path: Path) -> None:
    devices = Devices(str(nvidia_smi(tmp_path)))
    assert devices.wait_until_free(lambda: None, 0) == 0
    (tmp_path / "used").write_text("10\n5020\n")
    assert devices.wait_until_free(lambda: None, 0) == 5000
    assert not devices.is_free
    assert devices.wait_until_free(partial(free_after, time.monotonic() + 0.6, tmp_path), 60) == 0
    assert devices.is_free


def free_after(moment: float, folder: Path) -> None:
    if time.monotonic() > moment:
        (folder / "used").write_text("100\n20\n")


@pytest.mark.parametrize("answer", ["[N/A]\n", ""])
def test_a_silent_device_is_not_waited_for(answer: str, tmp_path: Path) -> None:
    program = nvidia_smi(tmp_path)
    (tmp_path / "used").write_text(answer)
    assert Devices(str(program)).wait_until_free(lambda: None, 0) == 0
    assert Devices(str(tmp_path / "nothing")).wait_until_free(lambda: None, 0) == 0


def test_a_run_with_a_busy_device_is_not_started(tmp_path: Path) -> None:
    job = device_job(tmp_path)
    job.succeed()
    assert (job.end("a") or {})["leftovers"]["device_mebibytes"] == 9000
    end = job.end("b") or {}
    assert (end["reason"], end["exit_code"], end["place"]) == ("device_busy", None, None)
    assert job.log("b") == []


def test_others_may_use_the_devices_of_their_own_machine(tmp_path: Path) -> None:
    job = device_job(tmp_path)
    job.environment = {"PATH": job.environment["PATH"]}
    job.succeed()
    assert [(job.end(run_id) or {})["exit_code"] for run_id in ("a", "b")] == [0, 0]


def test_a_stopped_job_does_not_wait_for_its_devices(tmp_path: Path) -> None:
    job = device_job(tmp_path, "--sleep", "600", device_seconds=600)
    job.stop(lambda: "sleeps" in job.log("a"))
    assert job.events()[-3:-1] == [("run_left", "a", "stopped"), ("run_left", "b", "stopped")]


def device_job(folder: Path, *arguments: str, device_seconds: float = 0.1) -> SharedJob:
    """Its machine, with a device, is its own. Run ``a`` uses the device."""
    (folder / "memory").mkdir()
    path = f"{nvidia_smi(folder).parent}:{os.environ['PATH']}"
    return SharedJob(
        root=folder,
        runs=[
            run_document("a", "--use-device", str(folder / "used"), *arguments),
            run_document("b"),
        ],
        environment={"PATH": path, "TRAINDYNO_SHARED_MEMORY": str(folder / "memory")},
        limits={"device_seconds": device_seconds},
    )


def test_shared_memory_of_living_processes_stays(tmp_path: Path) -> None:
    (tmp_path / "before").write_bytes(b"x")
    before = shared_memory(tmp_path)
    for name in ("open", "mapped", "left"):
        (tmp_path / name).write_bytes(b"x" * 4096)
    with (tmp_path / "open").open("rb"), (tmp_path / "mapped").open("r+b") as file:
        mapped = mmap.mmap(file.fileno(), 0)
        file.close()
        assert remove_shared_memory(tmp_path, before) == 1
        mapped.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["before", "mapped", "open"]


def test_only_the_shared_memory_of_a_job_alone_is_its_own() -> None:
    host = Host("algo-1", ("algo-1",), "job-a1", Path("/folder"), {})
    assert host.shared_memory == Path("/dev/shm")
    assert host._replace(environment={"TRAINDYNO_OPT_ML": "/here"}).shared_memory is None
    assert remove_shared_memory(None, shared_memory(None)) == 0


def test_a_line_and_an_end_on_a_full_disk_are_known_to_be_missing(tmp_path: Path) -> None:
    (tmp_path / "full").symlink_to("/dev/full")
    assert not append(tmp_path / "full", "line\n")
    assert append(tmp_path / "journal", "line\n")
    assert write_last(tmp_path / "end", "text")
    assert not write_last(tmp_path / "end" / "below-a-file", "text")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["end", "full", "journal"]
