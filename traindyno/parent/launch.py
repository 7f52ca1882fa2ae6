"""Starts a run's processes on this host as the training toolkit would."""

import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import Dict, List, NamedTuple, Optional, Set, Tuple

from traindyno.core.jobs.journal_format import TORCHRUN, TORCHRUN_VARIABLE
from traindyno.parent.document import RunOrder
from traindyno.parent.process_tree import end_with_parent

NOT_STARTED = 127  # as a shell's, of a program that it cannot start


class Meeting(NamedTuple):
    """Where the processes of one run meet. ``name`` is new for each run and attempt."""

    hosts: int
    rank: int
    address: str
    port: int
    name: str


class Setting(NamedTuple):
    """Setting in which processes start.

    ``output`` is a descriptor to which the processes write.
    """

    run: RunOrder
    program: str
    environment: Dict[str, str]
    output: int


class Start(NamedTuple):
    """Start of a run's processes.

    ``is_forked`` holds on all hosts, because forked ranks and ranks of torchrun do not find each
    other.
    """

    setting: Setting
    arguments: Tuple[str, ...]
    meeting: Meeting
    is_forked: bool


class Child:
    """The processes of one run on this host, by the first of them."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self._process = process

    @property
    def first(self) -> Set[int]:
        """The process that gets a stop. torchrun passes it on: a rank that got it too would get it
        twice.
        """
        return {self._process.pid}

    def poll(self) -> Optional[int]:
        """The exit code, or the negative number of a signal; None while it runs."""
        return self._process.poll()


def start_processes(start: Start) -> Child:
    """Each with a new interpreter. Raises OSError if the program can't be started."""
    process = subprocess.Popen(
        command(start),
        stdin=subprocess.DEVNULL,
        stdout=start.setting.output,
        stderr=subprocess.STDOUT,
        env=start.setting.environment,
        start_new_session=True,
        preexec_fn=end_with_this_process,  # noqa: PLW1509 -- the parent has one thread
    )
    return Child(process)


def command(start: Start) -> List[str]:
    setting = start.setting
    program = setting.program
    arguments = list(start.arguments)
    if setting.run.launcher != TORCHRUN:
        if Path("setup.py").exists():
            return [sys.executable, "-m", program.replace(".py", ""), *arguments]
        if program.endswith(".py"):
            return [sys.executable, program, *arguments]
        return ["/bin/sh", "-c", " ".join(["./" + program, *map(shlex.quote, arguments)])]
    lead = (
        ["neuron_parallel_compile"]
        if setting.environment.get("RUN_NEURON_PARALLEL_COMPILE") == "1"
        else []
    )
    return [*lead, sys.executable, *_torchrun(start), program, *arguments]


def _torchrun(start: Start) -> List[str]:
    meeting = start.meeting
    size = [
        "--nnodes",
        str(meeting.hosts),
        "--nproc_per_node",
        str(start.setting.run.processes_per_host),
    ]
    own = os.environ.get(TORCHRUN_VARIABLE)
    if own:
        # With -P, the modules in this program's folder can't replace those of the standard library.
        place = [
            "--rdzv_backend",
            "loopback",
            "--rdzv_endpoint",
            "{}:{}".format(meeting.address, meeting.port),
        ]
        rank = ["--rdzv_conf", "rank={}".format(meeting.rank), "--local_addr", meeting.address]
        return ["-P", own, *size, *place, *rank, "--rdzv_id", meeting.name, "--max_restarts", "0"]
    place = [
        "--master_addr",
        meeting.address,
        "--master_port",
        str(meeting.port),
        "--node_rank",
        str(meeting.rank),
    ]
    return [
        "-m",
        "torch.distributed.run",
        *size,
        *place,
        "--rdzv_id",
        meeting.name,
        "--max_restarts",
        "0",
    ]


def end_with_this_process() -> None:
    """In a child, before exec: it is killed when the parent ends."""
    end_with_parent(signal.SIGKILL)
