"""Start, find and stop the two processes of a local cloud."""

import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil

from localcloud.home import Daemon, Home
from traindyno.core.errors import TraindynoError

LOOPBACK = "127.0.0.1"
START_SECONDS = 60.0
STOP_SECONDS = 20.0
LOG_LINES_SHOWN = 15


class LocalCloudFailed(TraindynoError):
    """A part of the local cloud did not start, or is not running when it is needed."""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        port: int = probe.getsockname()[1]
    return port


def is_taken(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((LOOPBACK, port)) == 0


def start(
    home: Home,
    name: str,
    command: Sequence[str],
    *,
    port: int,
    health_url: str,
    environment: Mapping[str, str],
    folder: Path,
) -> Daemon:
    """Start a process of its own session and wait until ``health_url`` answers."""
    log = home.log(name)
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as sink:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=subprocess.STDOUT,
            env=dict(environment),
            cwd=folder,
            start_new_session=True,
        )
    daemon = Daemon(process_id=process.pid, started_at=psutil.Process(process.pid).create_time(), port=port)
    home.write_daemon(name, daemon)
    deadline = time.monotonic() + START_SECONDS
    while not answers(health_url):
        if process.poll() is not None or time.monotonic() > deadline:
            why = "it ended" if process.poll() is not None else f"no answer from {health_url} in {START_SECONDS:.0f} s"
            stop(home, name)
            raise LocalCloudFailed(f"{name} did not start: {why}. The end of {log}:\n{tail(log)}")
        time.sleep(0.05)
    return daemon


def answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2) as reply:
            return bool(reply.status < 500)
    except urllib.error.HTTPError as error:
        return error.code < 500
    except OSError:
        return False


def running(home: Home, name: str) -> Daemon | None:
    """The daemon under this name, if the process that was started is still the one with its number."""
    daemon = home.read_daemon(name)
    return daemon if daemon and _process_of(daemon) else None


def stop(home: Home, name: str) -> bool:
    """End the daemon and every process under it; True if there was one."""
    daemon = home.read_daemon(name)
    process = _process_of(daemon) if daemon else None
    if process:
        family = [process, *process.children(recursive=True)]
        process.terminate()
        psutil.wait_procs([process], timeout=STOP_SECONDS)
        for survivor in family:
            if survivor.is_running():
                survivor.kill()
        psutil.wait_procs(family, timeout=STOP_SECONDS)
    home.forget(name)
    return process is not None


def tail(log: Path) -> str:
    lines = log.read_text(errors="replace").splitlines() if log.exists() else []
    return "\n".join(lines[-LOG_LINES_SHOWN:])


def _process_of(daemon: Daemon) -> psutil.Process | None:
    try:
        process = psutil.Process(daemon.process_id)
        is_same = abs(process.create_time() - daemon.started_at) < 1 and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return None
    return process if is_same else None
