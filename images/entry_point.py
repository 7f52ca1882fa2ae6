"""PID 1 of the lab's images: starts the base image's entry point and passes SIGTERM on to the
training program.

The base image passes no signal on. Its entry point is a bash without a trap, and the training
toolkit starts the program through a shell and installs no handler, so that a program without this
entry point learns nothing of a stop. The toolkit itself gets no SIGTERM: it waits for the program,
and uploads what the program has written.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import FrameType

BASE = ("bash", "-m", "start_with_right_hostname.sh")
TOOLKIT = "train"
SHELLS = ("sh", "bash", "dash")
# The toolkit starts it on hosts that wait for mpirun of the first one.
NOT_PROGRAMS = ("sshd",)
RESOURCES = Path(
    os.environ.get("TRAINDYNO_RESOURCE_CONFIG", "/opt/ml/input/config/resourceconfig.json")
)
# The program may be about to start when the signal arrives.
LOOK_AGAIN_SECONDS, LOOKS = 0.5, 60


def main(arguments: list[str]) -> int:
    is_stopping = False

    def stop(_number: int, _frame: FrameType | None) -> None:
        nonlocal is_stopping
        is_stopping = True

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    child = subprocess.Popen([*BASE, *arguments], env={**os.environ, **rendezvous()})
    looks = 0
    while (code := child.poll()) is None:
        if is_stopping and looks < LOOKS:
            looks = LOOKS if pass_on(child.pid) else looks + 1
        reap_orphans(child.pid)
        time.sleep(LOOK_AGAIN_SECONDS)
    return 128 - code if code < 0 else code


def rendezvous() -> dict[str, str]:
    """Gloo binds to what the host's name resolves to, which on SageMaker may be loopback: it is
    told the interface.
    """
    try:
        resources = json.loads(RESOURCES.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    interface = resources.get("network_interface_name")
    several = (
        len(resources.get("hosts", ())) > 1 and interface and "GLOO_SOCKET_IFNAME" not in os.environ
    )
    return {"GLOO_SOCKET_IFNAME": interface} if several else {}


def pass_on(top: int) -> int:
    """Sends SIGTERM to the programs that the toolkit has started, and returns their number.

    A shell between them is passed over. The programs' own children are theirs to stop, as
    torchrun's ranks are.
    """
    children: dict[int, list[int]] = {}
    for process_id, parent in process_table():
        children.setdefault(parent, []).append(process_id)
    found, open_processes = (
        0,
        [each for toolkit in toolkits(top, children) for each in children.get(toolkit, [])],
    )
    while open_processes:
        process_id = open_processes.pop()
        below, name = children.get(process_id, []), Path(command(process_id)[0]).name
        if below and name in SHELLS:
            open_processes += below
        if (below and name in SHELLS) or name in NOT_PROGRAMS:
            continue
        with contextlib.suppress(ProcessLookupError):
            os.kill(process_id, signal.SIGTERM)
            found += 1
    return found


def toolkits(top: int, children: dict[int, list[int]]) -> list[int]:
    """The toolkit's processes: Python programs named ``train`` below ``top``."""
    found, open_processes = [], [top]
    while open_processes:
        process_id = open_processes.pop()
        words = command(process_id)
        is_shell = Path(words[0]).name in SHELLS
        if not is_shell and any(Path(word).name == TOOLKIT for word in words[:2]):
            found.append(process_id)
        else:
            open_processes += children.get(process_id, [])
    return found


def process_table() -> list[tuple[int, int]]:
    """Process and parent of each living process."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with contextlib.suppress(OSError):
                state, parent = (
                    (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()[:2]
                )
                if state != "Z":
                    found.append((int(entry.name), int(parent)))
    return found


def command(process_id: int) -> list[str]:
    try:
        return Path(f"/proc/{process_id}/cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return [""]


def reap_orphans(child: int) -> None:
    """Orphans become children of PID 1; the child's own end is left to ``Popen``."""
    with contextlib.suppress(ChildProcessError):
        while found := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            if found.si_pid == child:
                return
            os.waitpid(found.si_pid, 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
