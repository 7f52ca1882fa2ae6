"""Limits how many worker processes a function has, and how many of them start at once; MiniStack has no limit.

MiniStack starts a worker for every call that finds none free. A new interpreter takes a second of CPU time to start
and a call a tenth, so most workers of a burst would be ready only after its last call.
"""

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

# Upper bound of a wait: it breaks a deadlock of a call and a worker that wait for each other.
LONGEST_WAIT_SECONDS = 10.0
LOOK_AGAIN_SECONDS = 0.05


class Worker(Protocol):
    """MiniStack's process for one function: ``in_use`` while it has a call, ``_cold`` until it has started."""

    in_use: bool
    _cold: bool


class WorkerPool:
    """Takes workers from MiniStack's pool. A function has at most ``most_workers``, of which ``most_starting`` start.

    A call that has waited for ``longest_wait_seconds`` gets one beyond that.
    """

    def __init__(
        self,
        workers_of: Callable[..., Sequence[Worker]],
        take: Callable[..., Any],
        give_back: Callable[[Any], None],
        *,
        most_starting: int,
        most_workers: int,
        longest_wait_seconds: float = LONGEST_WAIT_SECONDS,
    ) -> None:
        """``workers_of`` is called with the function's name, configuration and qualifier."""
        self._workers_of = workers_of
        self._take = take
        self._give_back = give_back
        self._most_starting = most_starting
        self._most_workers = most_workers
        self._longest_wait_seconds = longest_wait_seconds
        self._changed = threading.Condition()

    def acquire(self, name: str, config: Any, code: bytes, qualifier: str = "$LATEST", **options: Any) -> Any:
        """Returns what MiniStack returns: a worker, and whether it was reused."""
        deadline = time.monotonic() + self._longest_wait_seconds
        with self._changed:
            while self._is_worth_waiting(name, config, qualifier) and time.monotonic() < deadline:
                self._changed.wait(LOOK_AGAIN_SECONDS)
            return self._take(name, config, code, qualifier=qualifier, **options)

    def release(self, worker: Any) -> None:
        self._give_back(worker)
        with self._changed:
            self._changed.notify_all()

    def _is_worth_waiting(self, name: str, config: Any, qualifier: str) -> bool:
        workers = self._workers_of(name, config, qualifier)
        is_one_free = any(not worker.in_use for worker in workers)
        starting = sum(worker._cold for worker in workers)
        return not is_one_free and (starting >= self._most_starting or len(workers) >= self._most_workers)
