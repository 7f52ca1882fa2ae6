"""What the supervisor of a host does to its processes: whom it stops, and how much memory they may
allocate.
"""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from localcloud.home import REPO_ROOT
from localcloud.sagemaker_service.host import supervisor
from localcloud.sagemaker_service.host.host_processes import HostOrder, HostProcesses
from localcloud.sagemaker_service.host.host_training import host_memory_bytes, machine_memory_bytes
from localcloud.sagemaker_service.instance_table import usable_cores
from localcloud.sagemaker_service.jobs.faults import Stops

CHILD = """
import pathlib, signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: pathlib.Path("stopped").touch())
pathlib.Path("began").touch()
time.sleep(600)
"""
# It ends half a second after its own stop.
LAUNCHER = f"""
import signal, subprocess, sys, time
signal.signal(signal.SIGTERM, lambda *_: (time.sleep(0.5), sys.exit(0)))
subprocess.Popen([sys.executable, "-c", {CHILD!r}], stdout=-3, stderr=-3).wait()
"""


MEMORY_BYTES = 2**29
# Files that are mapped take no memory, and a child has the limit too.
ALLOCATING = f"""
import mmap, subprocess, sys
with open("large", "wb") as file:
    file.truncate({4 * MEMORY_BYTES})
with open("large", "rb") as file:
    mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
print("mapped", len(mapped))
try:
    print(len(bytearray({2 * MEMORY_BYTES})))
except MemoryError:
    from traindyno.callbacks.failure import describe
    print(describe(MemoryError(), 0))
if len(sys.argv) < 2:
    subprocess.run([sys.executable, sys.argv[0], "child"], check=True)
"""


def order_of(folder: Path, command: list[str], **changes: Any) -> HostOrder:
    return HostOrder(
        host="algo-1",
        root=folder,
        command=command,
        environment={**os.environ, "PYTHONPATH": str(REPO_ROOT)},
        folder=folder,
        log=folder / "log.txt",
        cores=usable_cores(),
        **changes,
    )


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits what a process allocates")
@pytest.mark.parametrize("memory_bytes", [MEMORY_BYTES, None])
def test_no_process_of_a_host_allocates_more_than_its_memory(
    tmp_path: Path, memory_bytes: int | None
) -> None:
    (tmp_path / "allocate.py").write_text(ALLOCATING)
    order = order_of(
        tmp_path, [sys.executable, str(tmp_path / "allocate.py")], memory_bytes=memory_bytes
    )
    hosts = HostProcesses([order], order_folder=tmp_path, grace_seconds=60)
    try:
        while (codes := hosts.wait(0.2)) is None:
            pass
    finally:
        hosts.close()
    text = (
        "rank 0: MemoryError: no message; a process may allocate 0.5 GiB"
        if memory_bytes
        else str(2 * MEMORY_BYTES)
    )
    assert codes == {"algo-1": 0}
    # The child writes before its parent's output is flushed.
    assert sorted(order.log.read_text().splitlines()) == sorted(
        [f"mapped {4 * MEMORY_BYTES}", text] * 2
    )


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells the end of a process")
@pytest.mark.parametrize("copies_longer", [False, True])
def test_the_ends_of_the_script_and_its_output_are_seen_without_another_look(
    tmp_path: Path, copies_longer: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A look that comes later is billed."""
    monkeypatch.setattr(supervisor, "LOOK_AGAIN_SECONDS", 600.0)
    commands, service = os.pipe()
    copied, end = os.pipe()
    script = subprocess.Popen([sys.executable, "-c", ""])
    with os.fdopen(commands) as stdin, (tmp_path / "log.txt").open("wb", buffering=0) as log:
        monkeypatch.setattr(sys, "stdin", stdin)
        if copies_longer:
            threading.Timer(0.5, os.close, (end,)).start()
        else:
            os.close(end)
        assert supervisor._watch(script, copied, log, 60, stops="all") == 0
    os.close(service)
    os.close(copied)


def test_hosts_share_the_stated_memory_or_most_of_the_machines_evenly(tmp_path: Path) -> None:
    assert host_memory_bytes(0, 2, stated_gib=3) == 3 * 2**29
    assert host_memory_bytes(0, 1) == int(0.8 * machine_memory_bytes())
    assert host_memory_bytes(1, 1, stated_gib=3) is None
    limit = tmp_path / "memory.max"
    limit.write_text("1073741824\n")
    assert machine_memory_bytes(limit) == 2**30
    limit.write_text("max\n")
    assert machine_memory_bytes(limit) == machine_memory_bytes(tmp_path / "absent") > 2**30


@pytest.mark.parametrize("stops", Stops)
def test_a_stop_reaches_all_processes_or_the_first_one_or_none(
    tmp_path: Path, stops: Stops
) -> None:
    order = order_of(tmp_path, [sys.executable, "-c", LAUNCHER], stops=stops)
    hears = stops is not Stops.NONE
    hosts = HostProcesses([order], order_folder=tmp_path, grace_seconds=60 if hears else 1)
    try:
        deadline = time.monotonic() + 60
        while not (tmp_path / "began").exists():
            assert time.monotonic() < deadline
            time.sleep(0.02)
        hosts.stop()
        while (codes := hosts.wait(0.2)) is None:
            assert time.monotonic() < deadline
    finally:
        hosts.close()
    assert codes == {"algo-1": 0 if hears else 128 + signal.SIGKILL}
    assert (tmp_path / "stopped").exists() is (stops is Stops.ALL)


def test_a_stop_unread_by_a_supervisor_fails_no_job(tmp_path: Path) -> None:
    """As where it ends between the look at it and the write."""
    order = order_of(tmp_path, [sys.executable, "-c", "import time; time.sleep(60)"])
    hosts = HostProcesses([order], order_folder=tmp_path, grace_seconds=1)
    (process,) = hosts._supervisors.values()
    assert process.stdin is not None
    process.stdin.write(b"stop\n")
    hosts.kill()
    assert hosts.wait(60)
    hosts.close()
