"""The images' entry point, above a base image's chain: bash with job control, the toolkit, a shell,
the program.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

ENTRY_POINT = Path(__file__).parents[3] / "images/entry_point.py"
# As in AWS's training containers.
HOSTNAME_SCRIPT = '#!/usr/bin/env bash\nif [[ "$1" = "train" ]]; then train; else eval "$@"; fi\n'
TOOLKIT = """#!{python}
import asyncio, os, sys
async def run():
    process = await asyncio.create_subprocess_shell(os.environ["COMMAND"])
    return await process.wait()
sys.exit(asyncio.run(run()))
"""
PROGRAM = """
import os, signal, sys, time
def stop(number, frame):
    with open("heard", "a") as file: file.write("SIGTERM\\n")
    sys.exit(3)
if sys.argv[1] == "listens": signal.signal(signal.SIGTERM, stop)
open("started", "w").write(os.environ.get("GLOO_SOCKET_IFNAME", "none"))
time.sleep(float(sys.argv[2]))
"""


@pytest.fixture
def container(tmp_path: Path) -> Path:
    (tmp_path / "bin").mkdir()
    for name, text in (("start_with_right_hostname.sh", HOSTNAME_SCRIPT), ("train", TOOLKIT)):
        path = tmp_path / "bin" / name
        path.write_text(text.format(python=sys.executable) if name == "train" else text)
        path.chmod(0o755)
    (tmp_path / "program.py").write_text(PROGRAM)
    return tmp_path


def start(container: Path, command: str, **environment: str) -> "subprocess.Popen[bytes]":
    path = f"{container / 'bin'}{os.pathsep}{os.environ['PATH']}"
    inherited = {name: value for name, value in os.environ.items() if name != "GLOO_SOCKET_IFNAME"}
    own = {
        **inherited,
        "PATH": path,
        "COMMAND": command.format(python=sys.executable),
        **environment,
    }
    return subprocess.Popen([sys.executable, str(ENTRY_POINT), "train"], cwd=container, env=own)


def wait_for(path: Path) -> str:
    deadline = time.monotonic() + 60
    while not path.exists() or not path.read_text():
        assert time.monotonic() < deadline, f"{path} was not written"
        time.sleep(0.05)
    return path.read_text()


@pytest.mark.parametrize(
    "command",
    [
        "{python} program.py listens 60",
        "cd . && {python} program.py listens 60",
        "bash -c '{python} program.py listens 60; exit $?'",
    ],
)
def test_sigterm_reaches_the_program_and_not_the_toolkit(container: Path, command: str) -> None:
    process = start(container, command)
    wait_for(container / "started")
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 3, "the toolkit waited for the program and returned its exit code"
    assert (container / "heard").read_text() == "SIGTERM\n"


def test_the_exit_code_is_the_toolkits_without_a_signal(container: Path) -> None:
    assert start(container, "{python} program.py deaf 0").wait(60) == 0
    assert start(container, "exit 7").wait(60) == 7


@pytest.mark.parametrize(
    ("config", "interface"),
    [
        ({"hosts": ["algo-1", "algo-2"], "network_interface_name": "eth0"}, "eth0"),
        ({"hosts": ["algo-1"], "network_interface_name": "eth0"}, "none"),
        ({"hosts": ["algo-1", "algo-2"]}, "none"),
    ],
)
def test_gloo_is_told_the_interface_where_several_hosts_meet(
    container: Path, config: Mapping[str, object], interface: str
) -> None:
    (container / "resourceconfig.json").write_text(json.dumps(config))
    resources = str(container / "resourceconfig.json")
    assert (
        start(container, "{python} program.py deaf 0", TRAINDYNO_RESOURCE_CONFIG=resources).wait(60)
        == 0
    )
    assert wait_for(container / "started") == interface
