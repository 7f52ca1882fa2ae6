"""Starts the Python workers of MiniStack's functions by forking a process that has imported boto3
already.

As new interpreters, the workers took 77 of the 188 s of CPU time of a rehearsal of 1,000 runs. This
saving is the reason to replace a part of MiniStack.
"""

import contextlib
import hashlib
import json
import logging
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

SERVER = Path(__file__).with_name("worker_fork_server.py")
CODE_FOLDER_PREFIX = "ministack-lambda-code-"
LARGEST_ANSWER = 20
LONGEST_START_SECONDS = 30.0
LOG = logging.getLogger("traindyno")
_sharing = threading.Lock()


class WorkerProcess:
    """Popen-like handle of a process that the fork server started.

    Its exit status is unknown: ``returncode`` is 0 once it has ended.
    """

    def __init__(self, process_id: int, descriptor: int, pipes: Sequence[int]) -> None:
        self.pid = process_id
        self.returncode: int | None = None
        self.stdin = os.fdopen(pipes[0], "w", buffering=1, encoding="utf-8")
        self.stdout, self.stderr = (os.fdopen(pipe, encoding="utf-8") for pipe in pipes[1:])
        self._descriptor = descriptor
        self._lock = threading.Lock()

    def poll(self) -> int | None:
        return self.returncode if self._has_ended(0) else None

    def wait(self, timeout: float | None = None) -> int:
        """Raises ``subprocess.TimeoutExpired`` if the process has not ended after ``timeout``
        seconds.
        """
        if not self._has_ended(timeout):
            raise subprocess.TimeoutExpired(f"worker {self.pid}", timeout or 0)
        return 0

    def terminate(self) -> None:
        self._send(signal.SIGTERM)

    def kill(self) -> None:
        self._send(signal.SIGKILL)

    def _send(self, number: signal.Signals) -> None:
        with self._lock:
            if self.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    signal.pidfd_send_signal(self._descriptor, number)

    def _has_ended(self, timeout: float | None) -> bool:
        """Whether the process ends within ``timeout`` seconds; None waits without a limit."""
        if self.returncode is None:
            ready = select.poll()  # select() takes no descriptor above 1,023
            ready.register(self._descriptor, select.POLLIN)
            if not ready.poll(None if timeout is None else 1000 * timeout):
                return False
            with self._lock:
                self.returncode = 0
        return True

    def __del__(self) -> None:
        os.close(self._descriptor)


class ForkServer:
    """The process that forks the workers of one archive, whose code is in the folder ``code``."""

    def __init__(self, code: Path) -> None:
        self._connection, servers = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._connection.settimeout(LONGEST_START_SECONDS)
        with servers:
            self._process = subprocess.Popen(
                [sys.executable, "-P", str(SERVER), str(servers.fileno()), str(code)],
                pass_fds=[servers.fileno()],
                stdin=subprocess.DEVNULL,
            )

    @property
    def process_id(self) -> int:
        return self._process.pid

    def ask(self, request: str, files: Sequence[int]) -> tuple[int, int]:
        """A worker's process ID, and a descriptor of the process. Raises OSError."""
        socket.send_fds(self._connection, [request.encode()], files)
        answer, descriptors, _, _ = socket.recv_fds(
            self._connection, LARGEST_ANSWER, 1, socket.MSG_CMSG_CLOEXEC
        )
        if not answer:
            raise BrokenPipeError("the fork server of workers has ended")
        return int(answer), descriptors[0]

    def kill(self) -> None:
        self._connection.close()  # A late answer would be read as the answer to the next request.
        self._process.kill()
        self._process.wait()


class ForkedWorkers:
    """Starts workers by forking; its ``start`` replaces ``subprocess.Popen``.

    A program that can't be forked is started by ``subprocess.Popen``.
    """

    def __init__(self) -> None:
        self._asking = threading.Lock()
        self._code = Path(tempfile.mkdtemp(prefix=CODE_FOLDER_PREFIX))
        self.servers: dict[Path, ForkServer] = {}

    def close(self) -> None:
        """Ends the fork servers. A worker ends when its input is closed."""
        for server in self.servers.values():
            server.kill()

    @staticmethod
    def is_possible() -> bool:
        """Linux only: it needs pidfd_open, and forking is unsafe elsewhere."""
        return hasattr(os, "pidfd_open")

    def start(
        self, arguments: Sequence[str], *, cwd: str, env: Mapping[str, str], **options: Any
    ) -> Any:
        """Starts a worker.

        Args:
            arguments: An interpreter and its program.
            cwd: The folder of the function's code.
            env: The environment of the process.
            options: The options of ``Popen`` for text pipes.
        """
        if arguments[0] == sys.executable:
            try:
                return self._fork(arguments[1], cwd, env, share_code(Path(cwd), self._code))
            except OSError as error:
                LOG.warning("a worker is started without the fork server: %s", error)
        return subprocess.Popen(arguments, cwd=cwd, env=dict(env), **options)

    def _fork(
        self, program: str, folder: str, environment: Mapping[str, str], code: Path
    ) -> WorkerProcess:
        request = json.dumps(
            {"program": program, "folder": folder, "environment": dict(environment)}
        )
        pipes = [os.pipe() for _ in range(3)]
        (stdin, to_stdin), (from_stdout, stdout), (from_stderr, stderr) = pipes
        try:
            process_id, descriptor = self._ask(code, request, [stdin, stdout, stderr])
        except OSError:
            for pipe in (to_stdin, from_stdout, from_stderr):
                os.close(pipe)
            raise
        finally:
            for pipe in (stdin, stdout, stderr):
                os.close(pipe)
        return WorkerProcess(process_id, descriptor, [to_stdin, from_stdout, from_stderr])

    def _ask(self, code: Path, request: str, files: Sequence[int]) -> tuple[int, int]:
        with self._asking:
            if code in self.servers:
                try:
                    return self.servers[code].ask(request, files)
                except OSError as error:
                    LOG.warning(
                        "the fork server of workers has failed (%s): another one is started", error
                    )
                    self.servers[code].kill()
            self.servers[code] = ForkServer(code)
            return self.servers[code].ask(request, files)


def share_code(folder: Path, shared: Path) -> Path:
    """Replaces a worker's unpacked code by a link to the code that another worker unpacked from the
    same archive, which it returns.

    Python has compiled that code already.
    """
    archive = folder.with_name("code.zip")
    place = shared / hashlib.sha256(archive.read_bytes()).hexdigest()
    with _sharing:
        if place.exists():
            shutil.rmtree(folder)
        else:
            folder.rename(place)
        folder.symlink_to(place, target_is_directory=True)
    return place
