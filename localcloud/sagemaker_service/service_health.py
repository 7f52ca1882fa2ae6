"""The service's current problems by part, and threads whose end is reported as one."""

import errno
import logging
import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path

LOG = logging.getLogger(__name__)
LEAST_FREE_BYTES = 2**20
RETRY_SECONDS = 1.0


class ServiceHealth:
    """The latest problem of each part, until the part works again."""

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


class WatchedThread(threading.Thread):
    """A thread that must run as long as the service. If ``work`` raises, health says so and ``at_death`` is called."""

    def __init__(
        self, name: str, work: Callable[[], None], *, health: ServiceHealth, at_death: Callable[[BaseException], None]
    ) -> None:
        super().__init__(name=name, daemon=True)
        self._work = work
        self._health = health
        self._at_death = at_death
        self.death: BaseException | None = None

    def run(self) -> None:
        try:
            self._work()
        except BaseException as error:  # noqa: BLE001 -- nobody joins this thread: what is not caught here is lost
            self.death = error
            self._health.report(f"{self.name} has ended", error)
            self._at_death(error)


def write_until_done(write: Callable[[], object], *, health: ServiceHealth, part: str, ending: threading.Event) -> None:
    """Repeats ``write`` until it succeeds or the service ends: on a full disk nothing can be written."""
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


def find_disk_problem(folder: Path, least_free_bytes: int = LEAST_FREE_BYTES) -> dict[str, str]:
    """As a problem of the part ``disk``; empty while there is space."""
    free = shutil.disk_usage(folder).free
    if free >= least_free_bytes:
        return {}
    return {
        "disk": f"{os.strerror(errno.ENOSPC)}: {folder} has {free:,} free bytes, and {least_free_bytes:,} are needed"
    }


def error_text(error: BaseException) -> str:
    """The kind of error and its text: one without the other is often not enough."""
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
