"""The two processes of a local cloud: how they are started, found and stopped."""

import os
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import psutil

from localcloud.home import Daemon, Home
from localcloud.private_files import OWNER_ONLY, open_private
from traindyno.core.errors import TraindynoError

START_SECONDS = 60.0
KILL_SECONDS = 1.0
LOG_LINES_SHOWN = 15
LOOK_AGAIN_SECONDS = 0.05
# The user's proxy must not get these requests: they have the local cloud's access key.
WITHOUT_PROXY = urllib.request.build_opener(urllib.request.ProxyHandler({}))
# In a daemon's environment: its home, its name and its port.
PART = "TRAINDYNO_LOCAL_PART"


class LocalCloudFailed(TraindynoError):
    """A part of the local cloud did not start, or does not run although it is needed."""


def start(
    home: Home,
    name: str,
    command: Sequence[str],
    *,
    port: int,
    health: urllib.request.Request,
    environment: Mapping[str, str],
    folder: Path,
) -> Daemon:
    """Start a process in a new session and wait until ``health`` is answered.

    Its files are its owner's alone.
    """
    log = home.prepare_log(name)
    with open(log, "ab", opener=open_private) as sink:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=subprocess.STDOUT,
            env={**environment, PART: _part_text(home, name, port)},
            cwd=folder,
            start_new_session=True,
            umask=OWNER_ONLY,
        )
    daemon = Daemon(process_id=process.pid, port=port)
    home.write(name, daemon)
    deadline = time.monotonic() + START_SECONDS
    while not answers(health):
        if process.poll() is not None or time.monotonic() > deadline:
            silence = f"no answer from {health.full_url} in {START_SECONDS:.0f} s"
            why = silence if process.poll() is None else "it ended"
            stop(home, name, seconds=KILL_SECONDS)
            raise LocalCloudFailed(f"{name} did not start: {why}. The end of {log}:\n{tail(log)}")
        time.sleep(LOOK_AGAIN_SECONDS)
    return daemon


def answers(request: urllib.request.Request) -> bool:
    try:
        with WITHOUT_PROXY.open(request, timeout=2) as reply:
            return bool(reply.status < 500)
    except urllib.error.HTTPError as error:
        return error.code < 500
    except OSError:
        return False


def running(home: Home, name: str) -> Daemon | None:
    """The daemon of this name; None if its process has ended, also if another process has its
    number now.
    """
    daemon = home.read_daemon(name)
    return daemon if daemon and _daemon_of(daemon.process_id, home, name) else None


def stop(home: Home, name: str, *, seconds: float) -> bool:
    """Ends the daemon and its descendants; True if it ran.

    After ``seconds``, the remaining processes are killed.
    """
    daemon = home.read_daemon(name)
    process = _daemon_of(daemon.process_id, home, name) if daemon else None
    if process:
        family = [process, *process.children(recursive=True)]
        process.terminate()
        _await_end([process], seconds)
        for survivor in family:
            if not _has_ended(survivor):
                survivor.kill()
        _await_end(family, KILL_SECONDS)
    home.forget(name)
    return process is not None


def find_again(home: Home, name: str) -> None:
    """Writes the document of a daemon anew, whatever it is now.

    Without a daemon that runs, no document is left.
    """
    home.forget(name)
    processes = [_daemon_of(number, home, name) for number in psutil.pids()]
    marked = [process for process in processes if process]
    if marked:
        # Programs that it started may have its environment too, and are younger.
        oldest = min(marked, key=lambda process: process.create_time())
        port = int(oldest.environ()[PART].rpartition(":")[2])
        home.write(name, Daemon(process_id=oldest.pid, port=port))


def _daemon_of(process_id: int, home: Home, name: str) -> psutil.Process | None:
    """The process if it is this daemon, and no later process with its number.

    Its environment says so. Its time of start would not: it moves when the clock is set.
    """
    try:
        process = psutil.Process(process_id)
        is_marked = process.environ().get(PART, "").startswith(_part_text(home, name, ""))
    except (psutil.Error, OSError):
        return None
    is_daemon = is_marked and _session_of(process_id) == process_id
    return process if is_daemon and not _has_ended(process) else None


def _part_text(home: Home, name: str, port: int | str) -> str:
    return f"{home.folder.absolute()}:{name}:{port}"


def end_leftovers(home: Home, name: str) -> None:
    """Kills the child processes of a daemon that was killed: they hold its port, and the next
    daemon can't use it.
    """
    daemon = home.read_daemon(name)
    if daemon is None or _daemon_of(daemon.process_id, home, name):
        return
    left = [
        psutil.Process(number)
        for number in psutil.pids()
        if _session_of(number) == daemon.process_id
    ]
    for process in left:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    _await_end(left, KILL_SECONDS)


def _session_of(process_id: int) -> int | None:
    """The process's session: a daemon leads one, and its children stay in it after the daemon's
    end.
    """
    try:
        return os.getsid(process_id)
    except OSError:
        return None


def tail(log: Path) -> str:
    lines = log.read_text(errors="replace").splitlines() if log.exists() else []
    return "\n".join(lines[-LOG_LINES_SHOWN:])


def _await_end(processes: Sequence[psutil.Process], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not all(_has_ended(process) for process in processes) and time.monotonic() < deadline:
        time.sleep(LOOK_AGAIN_SECONDS)


def _has_ended(process: psutil.Process) -> bool:
    """A zombie has ended: only its parent can remove it, and the parent may run for a long time."""
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
