"""Health of the service: worker threads that outlive their errors, and the time of no request."""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

LOG = logging.getLogger(__name__)
RETRY_SECONDS = 1.0
INTERNAL_ERROR = "InternalServerError: We encountered an internal error.  Please try again."


class Activity:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._count = 0
        self._latest = time.monotonic()

    @contextmanager
    def busy(self) -> Iterator[None]:
        with self._lock:
            self._count += 1
        try:
            yield
        finally:
            with self._lock:
                self._count -= 1
                self._latest = time.monotonic()

    def quiet_seconds(self) -> float:
        """Seconds since the latest activity ended; 0 while one is in progress."""
        with self._lock:
            return 0.0 if self._count else time.monotonic() - self._latest


class Worker(threading.Thread):
    """A thread that repeats ``step`` until the service ends.

    An error is logged, and the step follows a second later.

    ``step`` returns whether it had work. Without work, the worker waits until ``wake`` is called,
    ``idle_seconds`` at most (None: without a limit).
    """

    def __init__(
        self, name: str, step: Callable[[], bool], *, idle_seconds: float | None = None
    ) -> None:
        super().__init__(name=name, daemon=True)
        self._step = step
        self._idle_seconds = idle_seconds
        self._woken = threading.Event()
        self.ending = threading.Event()

    def wake(self) -> None:
        self._woken.set()

    def close(self) -> None:
        """Returns when the current step has ended."""
        self.ending.set()
        self.wake()
        if self.ident is not None:
            self.join()

    def run(self) -> None:
        while not self.ending.is_set():
            self._woken.clear()
            try:
                had_work = self._step()
            except Exception:  # an error with one job or event must not stop the next
                LOG.exception("%s", self.name)
                self.ending.wait(RETRY_SECONDS)
                continue
            if (
                not had_work and not self.ending.is_set()
            ):  # ``close`` may have called ``wake`` before it was cleared
                self._woken.wait(self._idle_seconds)


def write_until_done(write: Callable[[], object], ending: threading.Event) -> None:
    """Repeats ``write`` until it succeeds or the service ends: nothing can be written while the
    disk is full.
    """
    while not ending.is_set():
        try:
            write()
        except Exception:  # a job without its end would hold up its suite for ever
            LOG.exception("the end of a job was not stored, again in %g s", RETRY_SECONDS)
            ending.wait(RETRY_SECONDS)
        else:
            return


def internal_error(error: BaseException) -> str:
    """The failure reason for a fault of this service, with its text: SageMaker's own sentence has
    no cause.
    """
    return f"{INTERNAL_ERROR} ({type(error).__name__}{f': {error}' if str(error) else ''})"
