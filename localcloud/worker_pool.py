"""The limits on the workers of MiniStack's functions.

MiniStack starts a worker for every call that finds none free. Most workers of a burst would be
ready only after its last call, so their number is limited.
"""

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

# Upper bound of a wait: it breaks a deadlock of a call and a worker that wait for each other.
LONGEST_WAIT_SECONDS = 10.0
LOOK_AGAIN_SECONDS = 0.05


class WorkerPool:
    """Takes workers from MiniStack's pool, within limits."""

    def __init__(
        self,
        workers_of: Callable[..., Sequence[Any]],
        take: Callable[..., Any],
        give_back: Callable[[Any], None],
        *,
        most_starting: int,
        most_workers: int,
        longest_wait_seconds: float = LONGEST_WAIT_SECONDS,
    ) -> None:
        """Limits the workers that MiniStack starts.

        MiniStack's worker is ``in_use`` while it has a call, and ``_cold`` until it has started.

        Args:
            workers_of: Returns the workers of a function by its name, configuration and qualifier.
            take: MiniStack's function that takes a worker for a call.
            give_back: MiniStack's function that gives it back.
            most_starting: How many workers of a function may start at once.
            most_workers: How many workers a function may have.
            longest_wait_seconds: How long a call waits for a worker. After it the call gets one
                beyond the limits.
        """
        self._workers_of = workers_of
        self._take = take
        self._give_back = give_back
        self._most_starting = most_starting
        self._most_workers = most_workers
        self._longest_wait_seconds = longest_wait_seconds
        self._changed = threading.Condition()

    def acquire(
        self, name: str, config: Any, code: bytes, qualifier: str = "$LATEST", **options: Any
    ) -> Any:
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
        return not is_one_free and (
            starting >= self._most_starting or len(workers) >= self._most_workers
        )
