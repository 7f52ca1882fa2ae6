"""The service's current problems by part, and worker threads that report theirs."""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


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


LOG = logging.getLogger(__name__)
RETRY_SECONDS = 1.0
INTERNAL_ERROR = "InternalServerError: We encountered an internal error.  Please try again."


class ServiceHealth:
    """Keeps the latest problem of each part until the part works again."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._problems: dict[str, str] = {}

    def report(self, part: str, error: BaseException) -> None:
        problem = error_text(error)
        with self._lock:
            is_new = self._problems.get(part) != problem
            self._problems[part] = problem
        if is_new:
            LOG.error("%s: %s", part, problem, exc_info=error)

    def clear(self, part: str) -> None:
        with self._lock:
            if self._problems.pop(part, None) is not None:
                LOG.info("%s works again", part)

    @property
    def problems(self) -> dict[str, str]:
        with self._lock:
            return dict(self._problems)


class Worker(threading.Thread):
    """A thread that repeats ``step`` until the service ends, and reports the step's errors to ``health``.

    ``step`` returns whether it had work. Without work, the worker waits until ``wake`` is called, ``idle_seconds`` at
    most (None: without a limit). If the thread itself ends, ``at_death`` is called.
    """

    def __init__(
        self,
        name: str,
        step: Callable[[], bool],
        *,
        health: ServiceHealth,
        at_death: Callable[[BaseException], None],
        idle_seconds: float | None = None,
    ) -> None:
        super().__init__(name=name, daemon=True)
        self._step = step
        self._health = health
        self._at_death = at_death
        self._idle_seconds = idle_seconds
        self._woken = threading.Event()
        self.ending = threading.Event()
        self.death: BaseException | None = None

    def wake(self) -> None:
        self._woken.set()

    def close(self) -> None:
        """Returns when the current step has ended."""
        self.ending.set()
        self.wake()
        if self.ident is not None:
            self.join()

    def run(self) -> None:
        try:
            while not self.ending.is_set():
                self._repeat()
        except BaseException as error:  # noqa: BLE001 -- nobody joins this thread: what is not caught here is lost
            self.death = error
            self._health.report(f"{self.name} has ended", error)
            self._at_death(error)

    def _repeat(self) -> None:
        self._woken.clear()
        try:
            had_work = self._step()
        except Exception as error:  # noqa: BLE001 -- an error with one job or event must not stop the next
            self._health.report(self.name, error)
            self.ending.wait(RETRY_SECONDS)
            return
        self._health.clear(self.name)
        if not had_work and not self.ending.is_set():  # ``close`` may have called ``wake`` before it was cleared here
            self._woken.wait(self._idle_seconds)


def write_until_done(write: Callable[[], object], *, health: ServiceHealth, part: str, ending: threading.Event) -> None:
    """Repeats ``write`` until it succeeds or the service ends: nothing can be written while the disk is full."""
    while True:
        try:
            write()
        except Exception as error:  # noqa: BLE001 -- a job without its end would hold up its suite for ever
            health.report(part, error)
            if ending.wait(RETRY_SECONDS):
                return
        else:
            health.clear(part)
            return


def internal_error(error: BaseException) -> str:
    """The failure reason for a fault of this service, with its text: SageMaker's own sentence has no cause."""
    return f"{INTERNAL_ERROR} ({error_text(error)})"


def error_text(error: BaseException) -> str:
    """The class of the error and its text: one without the other is often not enough."""
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
