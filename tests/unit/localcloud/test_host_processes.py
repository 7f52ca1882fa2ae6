"""Whom the supervisor of a host stops: all processes of a job, or the parent alone, which stops the others."""

import os
import sys
import time
from pathlib import Path

import pytest

from localcloud.sagemaker_service.host.host_processes import HostOrder, HostProcesses
from localcloud.sagemaker_service.instance_table import usable_cores

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
subprocess.Popen([sys.executable, "-c", {CHILD!r}]).wait()
"""


@pytest.mark.parametrize("stops_all", [True, False])
def test_a_stop_reaches_all_processes_or_the_first_one_alone(tmp_path: Path, stops_all: bool) -> None:
    order = HostOrder(
        host="algo-1",
        root=tmp_path,
        command=[sys.executable, "-c", LAUNCHER],
        environment=dict(os.environ),
        folder=tmp_path,
        log=tmp_path / "log.txt",
        cores=usable_cores(),
        stops_all=stops_all,
    )
    hosts = HostProcesses([order], order_folder=tmp_path, grace_seconds=60)
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
    assert codes == {"algo-1": 0}
    assert (tmp_path / "stopped").exists() is stops_all
