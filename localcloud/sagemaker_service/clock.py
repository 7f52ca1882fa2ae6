"""The clocks of jobs: the machine's clock for local jobs, virtual time for simulated ones."""

import heapq
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
LEAST_MS = 1000
# Longer pauses between the readings of two clocks would look like a change of one of them.
LONGEST_READING_MS = 100


class Machine:
    @property
    def boot_id(self) -> str:
        """It changes when the machine starts; empty if the operating system has none."""
        return BOOT_ID.read_text(encoding="ascii").strip() if BOOT_ID.exists() else ""

    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> int:
        """Milliseconds since a fixed moment of this boot. It stands still while the machine sleeps."""
        return time.monotonic_ns() // 1_000_000

    def boottime_ms(self) -> int:
        """The same with the time that the machine slept.

        Where the system has no such clock, as macOS, a sleep looks like a wall clock that moves forward.
        """
        if not hasattr(time, "CLOCK_BOOTTIME"):
            return self.monotonic_ms()
        return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000


MACHINE = Machine()


class ClockWatch:
    """Finds sleeps and changes of the wall clock since the last look."""

    def __init__(self, machine: Machine = MACHINE) -> None:
        self._machine = machine
        self._before = self._differences()

    def look(self) -> str | None:
        """What happened, as a sentence; None if nothing did."""
        found = self._differences()
        if found is None:
            return None
        before, self._before = self._before or found, found
        slept_ms, set_ms = found[0] - before[0], found[1] - before[1]
        events = [f"The machine slept for {slept_ms / 1000:.0f} s."] if slept_ms >= LEAST_MS else []
        if abs(set_ms) >= LEAST_MS:
            direction = "forward" if set_ms > 0 else "back"
            events.append(f"The wall clock moved {direction} by {abs(set_ms) / 1000:.0f} s.")
        return f"{' '.join(events)} This changes no bill and no limit." if events else None

    def _differences(self) -> tuple[int, int] | None:
        """Boot time − monotonic time, and wall time − boot time; None if the readings took too long."""
        began = self._machine.boottime_ms()
        monotonic, wall = self._machine.monotonic_ms(), self._machine.wall_ms()
        ended = self._machine.boottime_ms()
        return None if ended - began > LONGEST_READING_MS else (ended - monotonic, wall - ended)


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


LONGEST_WAIT_SECONDS = 0.02
LONGEST_POOL_WAIT_SECONDS = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class NextCheck:
    """When a job is checked again. The clock does not jump to a check of a warm pool (``is_pool``)."""

    due_ms: int
    is_pool: bool = False


NOW = NextCheck(due_ms=0)


class Schedule:
    """The next check of each job. A job that ``take`` returns is busy until ``done`` is called.

    ``may_jump`` says whether the clock may jump to the next check, because no request is in progress.
    """

    def __init__(self, clock: VirtualClock, may_jump: Callable[[], bool]) -> None:
        self._clock = clock
        self._may_jump = may_jump
        self._condition = threading.Condition()
        self._due: list[tuple[int, str]] = []
        self._due_of: dict[str, int] = {}
        self._pools: set[str] = set()
        self._busy: set[str] = set()
        self._woken: set[str] = set()
        self._has_ended = False

    def wake(self, name: str) -> None:
        """Makes the job due now; a busy job is due when it is done."""
        with self._condition:
            if name in self._busy:
                self._woken.add(name)
            else:
                self._add(name, NOW)

    def take(self) -> str | None:
        """A job that is due; None if there is none. Then it has waited for a short time, or for the first job."""
        with self._condition:
            if self._has_ended:
                return None
            if self._due and self._due[0][0] <= self._clock.now_ms():
                return self._take_due(*heapq.heappop(self._due))
            self._wait()
            return None

    def done(self, name: str, check: NextCheck | None) -> None:
        """Ends the check of a busy job. ``check`` is its next one; None if it needs no other."""
        with self._condition:
            self._busy.discard(name)
            if name in self._woken:
                self._woken.discard(name)
                check = NOW
            if check is not None:
                self._add(name, check)

    def close(self) -> None:
        with self._condition:
            self._has_ended = True
            self._condition.notify()

    def _add(self, name: str, check: NextCheck) -> None:
        self._due_of[name] = check.due_ms
        (self._pools.add if check.is_pool else self._pools.discard)(name)
        heapq.heappush(self._due, (check.due_ms, name))
        self._condition.notify()

    def _take_due(self, due_ms: int, name: str) -> str | None:
        if self._due_of.get(name) != due_ms:
            # The entry is old: the job was scheduled again later.
            return None
        del self._due_of[name]
        self._pools.discard(name)
        self._busy.add(name)
        return name

    def _wait(self) -> None:
        if not self._due:
            self._condition.wait()
            return
        next_ms = self._due[0][0]
        has_only_pools = not self._busy and len(self._pools) == len(self._due_of)
        if self._clock.keep_pace(is_with_machine=has_only_pools):
            for name in list(self._pools):
                self._add(name, NextCheck(due_ms=0, is_pool=True))
        elif not has_only_pools and not self._busy and self._may_jump():
            self._clock.jump_to(next_ms)
        else:
            longest_seconds = LONGEST_POOL_WAIT_SECONDS if has_only_pools else LONGEST_WAIT_SECONDS
            self._condition.wait(min(self._clock.real_seconds_until(next_ms), longest_seconds))
