"""The clocks of jobs: the machine's clock for local jobs, virtual time for simulated ones."""

import threading
import time
from collections.abc import Callable
from typing import Protocol


class Clock(Protocol):
    def now_ms(self) -> int:
        """Epoch milliseconds that never decrease."""


class SystemClock:
    """The machine's time. When the system clock is set back, the time stands still."""

    def __init__(self) -> None:
        self._latest_ms = 0

    def now_ms(self) -> int:
        self._latest_ms = max(self._latest_ms, time.time_ns() // 1_000_000)
        return self._latest_ms


class VirtualClock:
    """Runs ``speed_up`` times as fast as the machine's clock, and can jump over a time without events.

    ``keep_pace`` lets it run no faster than the machine's for a while.
    """

    def __init__(self, *, start_ms: int, speed_up: float, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._base_ms = float(start_ms)
        self._full_speed = self._speed_up = speed_up
        self._monotonic = monotonic
        self._base_seconds = monotonic()
        self._lock = threading.Lock()

    def now_ms(self) -> int:
        with self._lock:
            return int(self._now_ms())

    def jump_to(self, epoch_ms: int) -> None:
        with self._lock:
            self._rebase(max(self._now_ms(), float(epoch_ms)))

    def keep_pace(self, *, is_with_machine: bool) -> bool:
        """Selects the machine's pace or the full speed. Returns whether the pace has changed."""
        with self._lock:
            speed_up = min(self._full_speed, 1.0) if is_with_machine else self._full_speed
            if speed_up == self._speed_up:
                return False
            self._rebase(self._now_ms())
            self._speed_up = speed_up
            return True

    def real_seconds_until(self, epoch_ms: int) -> float:
        with self._lock:
            return max(epoch_ms - self._now_ms(), 0.0) / 1000 / self._speed_up

    def after_real_seconds(self, seconds: float) -> int:
        """The virtual time when these seconds of real time have passed at the current pace."""
        with self._lock:
            return int(self._now_ms() + seconds * 1000 * self._speed_up) + 1

    def _rebase(self, now_ms: float) -> None:
        self._base_ms = now_ms
        self._base_seconds = self._monotonic()

    def _now_ms(self) -> float:
        return self._base_ms + (self._monotonic() - self._base_seconds) * 1000 * self._speed_up
