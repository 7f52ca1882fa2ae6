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

from traindyno.core.jobs.outcome import Outcome
from traindyno.core.step_log.line import failure_text
from traindyno.sagemaker.failure_reasons import read_failure_reason
from traindyno.sagemaker.request import STAY_VARIABLE

STOPPED = (
    Outcome.STOPPED_BY_USER,
    "the container was told to end, and its program ended",
)
DIVERGED = failure_text(Outcome.LOSS_DIVERGED, "rank 0: the loss is nan")
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
    (tmp_path / "output").mkdir()
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
        "SAGEMAKER_BASE_DIR": str(container),
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


@pytest.mark.parametrize(
    ("written", "told"),
    [
        (None, STOPPED),
        ('ExecuteUserScriptError:\nExitCode 1\nErrorMessage ""', STOPPED),
        (DIVERGED, (Outcome.LOSS_DIVERGED, "rank 0: the loss is nan")),
    ],
)
def test_the_failure_file_says_that_the_program_was_told_to_end(
    container: Path, written: str | None, told: tuple[Outcome, str]
) -> None:
    """The program's own outcome stays."""
    failure = container / "output/failure"
    if written:
        failure.write_text(written)
    process = start(container, "{python} program.py listens 60")
    wait_for(container / "started")
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 3
    assert read_failure_reason(f"AlgorithmError: {failure.read_text()}") == told


def test_an_unasked_end_is_told_by_the_toolkit_alone(container: Path) -> None:
    assert start(container, "exit 7", **{STAY_VARIABLE: "600"}).wait(60) == 7
    assert not (container / "output/failure").exists()


def test_the_container_of_a_spot_job_stays_after_its_program_was_told_to_end(
    container: Path,
) -> None:
    """What SageMaker calls a container that ends at the notice is not known."""
    process = start(container, "{python} program.py listens 60", **{STAY_VARIABLE: "6"})
    wait_for(container / "started")
    process.send_signal(signal.SIGTERM)
    told = time.monotonic()
    wait_for(container / "output/failure")
    assert process.poll() is None
    assert process.wait(60) == 3
    assert time.monotonic() - told > 5


def test_a_program_ending_well_after_sigterm_ends_the_container(container: Path) -> None:
    code = "import signal, sys, time; signal.signal(15, lambda *_: sys.exit(0)); "
    code += "open('started', 'w').write('x'); time.sleep(60)"
    process = start(container, f'{{python}} -c "{code}"', **{STAY_VARIABLE: "600"})
    wait_for(container / "started")
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 0
    assert not (container / "output/failure").exists()


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
def test_gloo_is_told_the_interface_on_several_hosts(
    container: Path, config: Mapping[str, object], interface: str
) -> None:
    (container / "input/config").mkdir(parents=True)
    (container / "input/config/resourceconfig.json").write_text(json.dumps(config))
    assert start(container, "{python} program.py deaf 0").wait(60) == 0
    assert wait_for(container / "started") == interface
