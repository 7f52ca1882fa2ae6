"""Decides when the replay engine checks each job, and lets the virtual clock jump over idle time."""

import heapq
import threading
from collections.abc import Callable
from dataclasses import dataclass

from localcloud.sagemaker_service.clock import VirtualClock

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
