"""The clocks of jobs: the machine's clock for local jobs, virtual time for simulated ones."""

import heapq
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

Clock: TypeAlias = "SystemClock | VirtualClock"
LONGEST_WAIT_SECONDS = 0.02
NOW_MS = 0


class SystemClock:
    """Wall time; while a job runs, the monotonic clock.

    Neither a new wall time nor a sleep of the machine changes the monotonic clock.
    """

    def __init__(self) -> None:
        # In ns, because whole milliseconds of two clocks would differ from their sum by one.
        self._zero_ns: int | None = None

    def now_ms(self) -> int:
        zero_ns = self._zero_ns
        return (time.time_ns() if zero_ns is None else zero_ns + time.monotonic_ns()) // 1_000_000

    @contextmanager
    def running(self, *, not_before_ms: int = 0) -> Iterator[None]:
        """While a job runs, one at a time.

        Its times begin now, but not before ``not_before_ms``.
        """
        self._zero_ns = max(time.time_ns(), not_before_ms * 1_000_000) - time.monotonic_ns()
        try:
            yield
        finally:
            self._zero_ns = None


class VirtualClock:
    """Runs ``speed_up`` times as fast as the machine's clock, and can jump over a time without
    events.
    """

    def __init__(
        self, *, start_ms: int, speed_up: float, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._speed_up = speed_up
        self._monotonic = monotonic
        self._base_ms = float(start_ms)
        self._base_seconds = monotonic()
        self._lock = threading.Lock()

    def now_ms(self) -> int:
        with self._lock:
            return int(self._now_ms())

    def jump_to(self, epoch_ms: int) -> None:
        with self._lock:
            self._base_ms = max(self._now_ms(), float(epoch_ms))
            self._base_seconds = self._monotonic()

    def real_seconds_until(self, epoch_ms: int) -> float:
        with self._lock:
            return max(epoch_ms - self._now_ms(), 0.0) / 1000 / self._speed_up

    def _now_ms(self) -> float:
        return self._base_ms + (self._monotonic() - self._base_seconds) * 1000 * self._speed_up


class Schedule:
    """The next check of each job. A job that ``take`` returns is busy until ``done`` is called.

    ``may_jump`` says whether the clock may jump to the next check, because no request is in
    progress.
    """

    def __init__(self, clock: VirtualClock, may_jump: Callable[[], bool]) -> None:
        self._clock = clock
        self._may_jump = may_jump
        self._condition = threading.Condition()
        self._due: list[tuple[int, str]] = []
        self._due_of: dict[str, int] = {}
        self._busy: set[str] = set()
        self._woken: set[str] = set()
        self._has_ended = False

    def wake(self, name: str) -> None:
        """Makes the job due now; a busy job is due when it is done."""
        with self._condition:
            if name in self._busy:
                self._woken.add(name)
            else:
                self._add(name, NOW_MS)

    def take(self) -> str | None:
        """A job that is due; None if there is none.

        Then it has waited for a short time, or for the first job.
        """
        with self._condition:
            if self._has_ended:
                return None
            if not self._due:
                self._condition.wait()
                return None
            next_ms = self._due[0][0]
            if next_ms <= self._clock.now_ms():
                due_ms, name = heapq.heappop(self._due)
                if (
                    self._due_of.get(name) == due_ms
                ):  # else the entry is old: the job was scheduled again later
                    del self._due_of[name]
                    self._busy.add(name)
                    return name
            elif not self._busy and self._may_jump():
                self._clock.jump_to(next_ms)
            else:
                self._condition.wait(
                    min(self._clock.real_seconds_until(next_ms), LONGEST_WAIT_SECONDS)
                )
            return None

    def done(self, name: str, due_ms: int | None) -> None:
        """Ends the check of a busy job.

        ``due_ms`` is the time of its next one; None if it needs no other.
        """
        with self._condition:
            self._busy.discard(name)
            if name in self._woken:
                self._woken.discard(name)
                due_ms = NOW_MS
            if due_ms is not None:
                self._add(name, due_ms)

    def close(self) -> None:
        with self._condition:
            self._has_ended = True
            self._condition.notify()

    def _add(self, name: str, due_ms: int) -> None:
        self._due_of[name] = due_ms
        heapq.heappush(self._due, (due_ms, name))
        self._condition.notify()
