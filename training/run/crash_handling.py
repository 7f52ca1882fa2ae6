"""Handles a failure of the run, whose cause the process logs before it exits."""

import json
import os
import signal
import sys
import threading
import time
import traceback
from pathlib import Path
from types import TracebackType

from torch import distributed

from traindyno.callbacks import StepLogger, failure
from traindyno.callbacks.failure import count_oom_kills
from traindyno.core.jobs.outcome import Outcome
from training.checkpoints.stop_request import StopRequest
from training.errors import PeerFailed, RunStopped, WorkloadError
from training.process.process_group import Topology
from training.run.ending import FAILURE_EXIT_CODE, exit_now

KEY = "traindyno/failure"  # in the job's store
PATIENCE_SECONDS = 2.0  # a failing peer names its cause before its connections close
PEER_SIGNS = (
    "closed by peer",
    "reset by peer",
    "broken pipe",
    "connection was likely closed",
    "remote process exited",
)
# The errors of a call with values that it can't take; errors of devices and peers have classes of
# their own.
OF_VALUES = (RuntimeError, ValueError, TypeError, KeyError, IndexError, AttributeError)
TORCH = "/torch/"
MODELS = "/transformers/models/"
# torchrun kills its processes 30 s after it sends SIGTERM; SageMaker ends the container after 120
# s.
CHECKPOINT_SECONDS = 25.0


class CrashHandler:
    """Handles uncaught errors, and SIGTERM: the launcher's when a peer failed, SageMaker's when a
    job is stopped.

    ``stop`` lets a run that keeps checkpoints write one more before it ends.
    """

    def __init__(self, step_log: StepLogger, topology: Topology, stop: StopRequest) -> None:
        self._step_log = step_log
        self._topology = topology
        self._stop = stop
        self._kills_before = count_oom_kills()
        self._lock = threading.Lock()

    def install(self) -> None:
        sys.excepthook = self._on_error
        # A Python handler waits for the main thread, which may be in a collective; the byte arrives
        # immediately.
        receiving, sending = os.pipe()
        os.set_blocking(sending, False)
        signal.signal(signal.SIGTERM, lambda *_: None)
        signal.set_wakeup_fd(sending, warn_on_full_buffer=False)
        os.register_at_fork(after_in_child=_reset_sigterm)
        threading.Thread(target=self._end_on_sigterm, args=(receiving,), daemon=True).start()

    def _on_error(
        self, kind: type[BaseException], error: BaseException, trace: TracebackType | None
    ) -> None:
        traceback.print_exception(kind, error, trace)
        with self._lock:
            if isinstance(error, RunStopped):
                self._end(error)
            if is_from_a_peer(error):
                message = f"another process was killed, or crashed in native code: {error}"
                lost = PeerFailed(Outcome.KILLED, message)
                error = self._failure_of_a_peer() or self._killed_peer() or lost
            else:
                error = self._cause_of(error)
            self._end(error)

    def _cause_of(self, error: BaseException) -> BaseException:
        """The failure of a peer, if it was first; otherwise the error, which is published."""
        earlier = find_failure()
        if earlier is not None:
            # The error may follow from it: a folder is removed with the process that made it.
            return PeerFailed(*earlier)
        named = named_of_model(error)
        outcome = failure.classify(named, Outcome.INTERNAL_ERROR)
        publish_failure(outcome, failure.describe(named, self._topology.rank))
        return named

    def _end_on_sigterm(self, receiving: int) -> None:
        while signal.SIGTERM not in os.read(receiving, 1):
            pass
        if self._stop.request():
            # The main thread ends the process when the checkpoint is complete. If that fails, the
            # one before is used.
            deadline = time.monotonic() + CHECKPOINT_SECONDS
            while time.monotonic() < deadline and find_failure() is None:
                time.sleep(0.05)
        with self._lock:
            # torchrun also stops the processes whose peer the kernel killed, which then could not
            # say so itself.
            killed = self._killed_peer() if self._topology.world_size > 1 else None
            stopped = RunStopped(f"the process was stopped after {self._step_log.steps} steps")
            self._end(self._failure_of_a_peer() or killed or stopped)

    def _failure_of_a_peer(self) -> PeerFailed | None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline:
            peer_failure = find_failure()
            if peer_failure is not None:
                return PeerFailed(*peer_failure)
            time.sleep(0.05)
        return None

    def _killed_peer(self) -> PeerFailed | None:
        if count_oom_kills() == self._kills_before:
            return None
        return PeerFailed(
            Outcome.OUT_OF_MEMORY, "the kernel killed a process of this job because memory ran out"
        )

    def _end(self, error: BaseException) -> None:
        self._step_log.failed(error)
        exit_now(FAILURE_EXIT_CODE)


def named_of_model(error: BaseException) -> BaseException:
    """An error that transformers' code of the model raised, in its own name: most often values of
    its configuration do not fit together. Any other error is as it was.
    """
    frames = traceback.extract_tb(error.__traceback__)
    files = [frame.filename for frame in frames if TORCH not in frame.filename]
    if type(error) not in OF_VALUES or not files or MODELS not in files[-1]:
        return error
    return WorkloadError(
        f"transformers' code of the model, {Path(files[-1]).name}, failed: {type(error).__name__}: "
        f"{error}; expected values of the model's configuration that fit together"
    )


def is_from_a_peer(error: BaseException) -> bool:
    return isinstance(error, RuntimeError) and any(
        sign in str(error).lower() for sign in PEER_SIGNS
    )


def _reset_sigterm() -> None:
    """SIGTERM ends a loader worker as it ends any process."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def publish_failure(outcome: str, message: str) -> None:
    """Sends the cause to the job's other processes, through the job's store."""
    if not distributed.is_initialized():
        return
    try:
        distributed.distributed_c10d._get_default_store().set(KEY, json.dumps([outcome, message]))
    except (RuntimeError, distributed.DistStoreError):
        return  # the store's host has ended; this host's processes still read the failure file


def find_failure() -> tuple[str, str] | None:
    """Returns outcome and message of the process that failed first; None while there is none."""
    outcome, message = failure.reported_failure()
    if outcome:
        return outcome, message
    if not distributed.is_initialized():
        return None
    store = distributed.distributed_c10d._get_default_store()
    try:
        if not store.check([KEY]):
            return None
        found_outcome, found_message = json.loads(store.get(KEY))
    except (RuntimeError, distributed.DistStoreError):
        return None
    return found_outcome, found_message
