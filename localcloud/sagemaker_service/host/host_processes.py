"""Starts, watches and stops the supervisors of one job's hosts."""

import contextlib
import json
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from multiprocessing import connection
from pathlib import Path

from localcloud.sagemaker_service.host import supervisor
from localcloud.sagemaker_service.host.own_opt_ml import with_own_opt_ml
from localcloud.sagemaker_service.jobs.faults import Stops
from localcloud.sagemaker_service.jobs.job import TrainingJob
from localcloud.sagemaker_service.settings import ServiceSettings

LOG = logging.getLogger(__name__)
JOB_NAME = "TRAINING_JOB_NAME"
MARK_VARIABLE = "TRAINDYNO_LOCAL_JOB"
LOOK_AGAIN_SECONDS = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class HostOrder:
    """What the supervisor of one host runs."""

    host: str
    #: The folder that the host's processes see as /opt/ml.
    root: Path
    command: Sequence[str]
    environment: Mapping[str, str]
    folder: Path
    log: Path
    cores: Sequence[int]
    #: Which of the host's processes get SIGTERM at a stop; the launcher stops the others.
    stops: Stops = Stops.ALL
    #: The most that each of the processes may allocate; None if there is no limit.
    memory_bytes: int | None = None


class HostProcesses:
    """One supervisor for each host. If a host fails, the others are stopped, as on SageMaker."""

    def __init__(
        self, orders: Sequence[HostOrder], *, order_folder: Path, grace_seconds: float
    ) -> None:
        self.first_failed: str | None = None
        self._lock = threading.Lock()
        self._supervisors = {
            order.host: _start(order, order_folder / f"{order.host}.json", grace_seconds)
            for order in orders
        }

    def stop(self) -> None:
        """Asks every host to end.

        The supervisors kill the processes that remain after the grace time.
        """
        with self._lock:
            for process in self._supervisors.values():
                if process.poll() is None and process.stdin is not None:
                    try:
                        process.stdin.write(b"stop\n")
                        process.stdin.flush()
                    except BrokenPipeError:
                        LOG.info("supervisor %s ended while it was asked to stop", process.pid)

    def kill(self) -> None:
        """Ends the supervisors, and so their launchers, without their help."""
        for process in self._supervisors.values():
            process.kill()

    def wait(self, seconds: float) -> dict[str, int] | None:
        """The hosts' exit codes if all have ended; None if some still run after ``seconds``."""
        running = [process for process in self._supervisors.values() if process.poll() is None]
        if running:
            _wait_for_end(running, seconds)
        codes = {host: process.poll() for host, process in self._supervisors.items()}
        failed = [host for host, code in codes.items() if code]
        if failed:
            self.first_failed = self.first_failed or failed[0]
            self.stop()
        ended = {host: code for host, code in codes.items() if code is not None}
        return ended if len(ended) == len(codes) else None

    def close(self) -> None:
        """Ends every supervisor.

        A supervisor ends its host within two seconds when its input is closed.
        """
        for process in self._supervisors.values():
            if process.stdin is not None:
                # Closing writes once more what stop() could not write, as the supervisor had ended.
                with contextlib.suppress(BrokenPipeError):
                    process.stdin.close()
        for process in self._supervisors.values():
            process.wait()


def _wait_for_end(processes: "Sequence[subprocess.Popen[bytes]]", seconds: float) -> None:
    """Waits until one of them ends.

    ``Popen.wait`` with a limit looks every 50 ms, which a job would be billed for.
    """
    with contextlib.ExitStack() as stack:
        ends = list[int]()
        try:
            for process in processes:
                ends.append(os.pidfd_open(process.pid))
                stack.callback(os.close, ends[-1])
        except (AttributeError, OSError):  # not Linux, or an older kernel
            with contextlib.suppress(subprocess.TimeoutExpired):
                processes[0].wait(seconds)
        else:
            connection.wait(ends, seconds)


def _start(order: HostOrder, order_path: Path, grace_seconds: float) -> "subprocess.Popen[bytes]":
    document = asdict(replace(order, command=with_own_opt_ml(order.root, order.command)))
    order_path.write_text(
        json.dumps({**document, "grace_seconds": grace_seconds}, default=str), encoding="utf-8"
    )
    command = [sys.executable, "-I", supervisor.__file__, str(order_path)]
    # With the job's name, the step log knows the supervisor as a launcher and counts the time from
    # its start.
    environment = {**os.environ, JOB_NAME: order.environment.get(JOB_NAME, "")}
    return subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True, env=environment)


def share_cores(cores: Sequence[int], host_count: int) -> list[list[int]]:
    """Divides the cores evenly into neighbouring cores for each host.

    Hosts share cores if there are more hosts.
    """
    if host_count >= len(cores):
        return [[cores[number % len(cores)]] for number in range(host_count)]
    bounds = [number * len(cores) // host_count for number in range(host_count + 1)]
    return [list(cores[first:last]) for first, last in pairwise(bounds)]


def process_mark(job: TrainingJob, settings: ServiceSettings) -> str:
    """The mark has the service's folder, because another service on this machine may have a job of
    the same name.
    """
    return f"{settings.state_folder}:{job.arn}"


def end_stray_processes(mark: str) -> int:
    """Kills the processes and returns their number.

    Without /proc it finds none, and only supervisors end them.
    """
    ended: set[int] = set()
    while process_ids := _marked_processes(mark):
        for process_id in process_ids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process_id, signal.SIGKILL)
        ended |= process_ids
        time.sleep(LOOK_AGAIN_SECONDS)
    return len(ended)


def _marked_processes(mark: str) -> set[int]:
    wanted = f"{MARK_VARIABLE}={mark}".encode()
    process_ids = set()
    for environment in Path("/proc").glob("[0-9]*/environ"):
        # The environment of a zombie is empty, and that of another user's process can't be read.
        with contextlib.suppress(OSError):
            if wanted in environment.read_bytes().split(b"\0"):
                process_ids.add(int(environment.parent.name))
    return process_ids
