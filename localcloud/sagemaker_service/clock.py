"""The clocks of jobs: the machine's clock for local jobs, virtual time for simulated ones."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from localcloud.sagemaker_service.machine_time import MACHINE, Machine


class Clock(Protocol):
    def now_ms(self) -> int:
        """Epoch milliseconds that never decrease while a job runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeScale:
    """Times as the monotonic clock of one boot counts them: ``zero_ms`` is the epoch time at which it was 0."""

    boot_id: str
    zero_ms: int


class SystemClock:
    """The wall clock; while a job runs, the monotonic clock, which neither a new wall time nor a sleep changes.

    Each time that jobs begin to run, ``keep`` gets the scale of their times, so that the next process of the service
    can continue it (``kept``).
    """

    def __init__(
        self,
        machine: Machine = MACHINE,
        *,
        kept: TimeScale | None = None,
        keep: Callable[[TimeScale], object] = lambda _: None,
    ) -> None:
        self.machine = machine
        self._kept = kept
        self._keep = keep
        self._lock = threading.Lock()
        self._running = 0
        self._zero_ms: int | None = None

    def now_ms(self) -> int:
        zero_ms = self._zero_ms
        return self.machine.wall_ms() if zero_ms is None else zero_ms + self.machine.monotonic_ms()

    @contextmanager
    def running(self, *, not_before_ms: int = 0) -> Iterator[None]:
        """While a job runs. If no other runs, its times begin now, but not before ``not_before_ms``."""
        with self._lock:
            if not self._running:
                zero_ms = max(self.machine.wall_ms(), not_before_ms) - self.machine.monotonic_ms()
                self._keep(TimeScale(boot_id=self.machine.boot_id, zero_ms=zero_ms))
                self._zero_ms = zero_ms
            self._running += 1
        try:
            yield
        finally:
            with self._lock:
                self._running -= 1
                if not self._running:
                    self._zero_ms = None

    def continued_ms(self) -> int | None:
        """Now, on the scale of the jobs that ran when the service ended; None if the machine was started since."""
        if self._kept is None or self._kept.boot_id != self.machine.boot_id or not self.machine.boot_id:
            return None
        return self._kept.zero_ms + self.machine.monotonic_ms()


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
