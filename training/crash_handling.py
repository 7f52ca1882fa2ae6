"""How a process ends when its run fails: it names the cause, its own or a peer's, and ends at once."""

import os
import signal
import sys
import threading
import time
import traceback
from types import TracebackType

from traindyno.callbacks import StepLogger, failure
from traindyno.core.jobs.outcome import Outcome
from training import failure_broadcast as cause
from training.data.once_per_host import remove_made_folders
from training.errors import PeerFailed, RunStopped
from training.oom_kills import count_kills_for_memory

PATIENCE_SECONDS = 2.0  # a failing peer names its cause before its connections close
PEER_SIGNS = ("closed by peer", "reset by peer", "broken pipe", "connection was likely closed", "remote process exited")
FAILURE_EXIT_CODE = 1


class Ending:
    """Takes over uncaught errors, and SIGTERM: the launcher's when a peer failed, SageMaker's when a job is stopped."""

    def __init__(self, step_log: StepLogger, rank: int) -> None:
        self._step_log = step_log
        self._rank = rank
        self._kills_before = count_kills_for_memory()
        self._lock = threading.Lock()

    def take_over(self) -> None:
        sys.excepthook = self._on_error
        self._watch_for_sigterm()

    def _on_error(self, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        traceback.print_exception(kind, error, trace)
        with self._lock:
            if is_from_a_peer(error):
                error = self._peers_cause() or self._lost_peer(error)
            else:
                outcome = failure.classify(error, Outcome.INTERNAL_ERROR)
                cause.publish(outcome, failure.describe(error, self._rank))
            self._end(error)

    def _watch_for_sigterm(self) -> None:
        # A Python handler would wait for the main thread, which may be deep in a collective; the byte arrives anyhow.
        receiving, sending = os.pipe()
        os.set_blocking(sending, False)
        signal.signal(signal.SIGTERM, lambda *_: None)
        signal.set_wakeup_fd(sending, warn_on_full_buffer=False)
        os.register_at_fork(after_in_child=_forget_sigterm)
        threading.Thread(target=self._end_on_sigterm, args=(receiving,), daemon=True).start()

    def _end_on_sigterm(self, receiving: int) -> None:
        while signal.SIGTERM not in os.read(receiving, 1):
            pass
        with self._lock:
            self._end(
                self._peers_cause() or RunStopped(f"the process was told to stop after {self._step_log.steps} steps")
            )

    def _peers_cause(self) -> PeerFailed | None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline:
            found = cause.find()
            if found is not None:
                return PeerFailed(*found)
            time.sleep(0.05)
        return None

    def _lost_peer(self, error: BaseException) -> PeerFailed:
        if count_kills_for_memory() > self._kills_before:
            return PeerFailed(Outcome.OUT_OF_MEMORY, "the kernel killed a process of this job for want of memory")
        return PeerFailed(Outcome.INTERNAL_ERROR, f"another process ended without a word: {error}")

    def _end(self, error: BaseException) -> None:
        self._step_log.failed(error)
        remove_made_folders()
        sys.stdout.flush()
        sys.stderr.flush()
        # Not sys.exit: destructors of process groups wait for peers that are gone.
        os._exit(FAILURE_EXIT_CODE)


def is_from_a_peer(error: BaseException) -> bool:
    return isinstance(error, RuntimeError) and any(sign in str(error).lower() for sign in PEER_SIGNS)


def _forget_sigterm() -> None:
    """Loader workers die of SIGTERM like any process; it is no news for this one."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
