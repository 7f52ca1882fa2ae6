"""PID 1 of the lab's images: starts the base image's entry point and passes SIGTERM on to the
training program.

The base image passes no signal on. Its entry point is a bash without a trap, and the training
toolkit starts the program through a shell and installs no handler, so that a program without this
entry point learns nothing of a stop. The toolkit itself gets no SIGTERM: it waits for the program,
and uploads what the program has written.

What SageMaker makes of a container that ends between the notice of a spot interruption and the end
of its instance is documented nowhere. Either answer is right here: in a spot job this process stays
until it is killed, and the failure file says that the program was told to end.
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
# The toolkit's own variable
BASE_FOLDER = Path(os.environ.get("SAGEMAKER_BASE_DIR", "/opt/ml"))
RESOURCES = BASE_FOLDER / "input/config/resourceconfig.json"
FAILURE = BASE_FOLDER / "output/failure"
OWN_OUTCOME = "traindyno-outcome: "
STOPPED = OWN_OUTCOME + "stopped_by_user: the container was told to end, and its program ended"
# SageMaker kills a container 120 s after SIGTERM. Spot jobs have the variable, with the seconds.
STAY_VARIABLE = "TRAINDYNO_STAY_AFTER_SIGTERM_SECONDS"
# The program may be about to start when the signal arrives.
LOOK_AGAIN_SECONDS, LOOKS = 0.5, 60


def main(arguments: list[str]) -> int:
    stopping_since: float | None = None

    def stop(_number: int, _frame: FrameType | None) -> None:
        nonlocal stopping_since
        stopping_since = stopping_since or time.monotonic()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    child = subprocess.Popen([*BASE, *arguments], env={**os.environ, **rendezvous()})
    looks = 0
    while (code := child.poll()) is None:
        if stopping_since is not None and looks < LOOKS:
            looks = LOOKS if pass_on(child.pid) else looks + 1
        reap_orphans(child.pid)
        time.sleep(LOOK_AGAIN_SECONDS)
    if stopping_since is not None and code != 0:
        tell_of_stop()
        stay = float(os.environ.get(STAY_VARIABLE, "0"))
        while time.monotonic() < stopping_since + stay:
            time.sleep(LOOK_AGAIN_SECONDS)
    return 128 - code if code < 0 else code


def tell_of_stop() -> None:
    """Replaces what the toolkit says of its program's end; an outcome of the program stays."""
    with contextlib.suppress(OSError):
        found = FAILURE.read_text(errors="replace") if FAILURE.exists() else ""
        if not found.startswith(OWN_OUTCOME):
            FAILURE.write_text(STOPPED)


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
