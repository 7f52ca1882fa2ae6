"""Counts the requests and deliveries in progress, so that virtual time jumps only when there are none."""

import threading
import time
from collections.abc import Iterator
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
