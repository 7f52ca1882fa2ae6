"""Applies AWS's limits on requests per second, which can't be raised, and counts the requests."""

import threading
from collections import Counter
from collections.abc import Mapping
from typing import Any

from localcloud.sagemaker_service.api_error import ApiError
from localcloud.sagemaker_service.clock import Clock

REQUESTS_PER_SECOND = {
    "CreateTrainingJob": 1.0,
    "DescribeTrainingJob": 5.0,
    "StopTrainingJob": 1.0,
    "ListTrainingJobs": 2.0,
    "UpdateTrainingJob": 1.0,
}


class RateLimits:
    """A token bucket for each operation. It holds the requests of one second, and the clock refills it."""

    def __init__(self, clock: Clock, rates: Mapping[str, float]) -> None:
        self._clock = clock
        self._rates = rates
        self._lock = threading.Lock()
        self._left = dict(rates)
        self._counted_at_ms = dict.fromkeys(rates, clock.now_ms())
        self._refused = Counter[str]()
        self._by_second: dict[str, Counter[int]] = {operation: Counter() for operation in rates}

    def counts(self) -> dict[str, Any]:
        """Counts of each operation: all requests, refused requests, and the most requests within a second."""
        with self._lock:
            return {
                operation: {
                    "requests": seconds.total(),
                    "refused": self._refused[operation],
                    "most_in_a_second": max(seconds.values(), default=0),
                }
                for operation, seconds in self._by_second.items()
            }

    def take(self, operation: str) -> None:
        rate = self._rates.get(operation)
        if rate is None:
            return
        with self._lock:
            now_ms = self._clock.now_ms()
            self._by_second[operation][now_ms // 1000] += 1
            gained = max(now_ms - self._counted_at_ms[operation], 0) / 1000 * rate
            self._left[operation] = min(self._left[operation] + gained, rate)
            self._counted_at_ms[operation] = now_ms
            if self._left[operation] < 1:
                self._refused[operation] += 1
                raise ApiError("ThrottlingException", "Rate exceeded")
            self._left[operation] -= 1
