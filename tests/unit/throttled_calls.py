"""Calls of a lab in memory that AWS throttles: each is refused as the adapter of its service would
refuse it.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from types import SimpleNamespace
from typing import Any

from botocore.exceptions import ClientError

from traindyno.core.errors import Throttled

METHODS = {
    "table": ("get", "put", "update", "delete", "write_all", "query"),
    "objects": ("find", "write", "copy", "copy_large", "renew", "delete", "list_sizes"),
    "jobs": ("start", "describe", "stop", "working"),
    "answers": ("succeed", "fail"),
    "notices": ("publish", "put_events"),
}
# These adapters raise the project's own error.
NAMED = {"start", "stop"}


class Throttle:
    """Refuses ``count`` calls from number ``begin`` on.

    ``made``: the names of the calls until it is lifted.
    """

    def __init__(self, begin: int | None = None, count: float = 1) -> None:
        self.made: list[str] = []
        self._begin = begin
        self._count = count
        self._is_inside = self._is_lifted = False

    def lift(self) -> None:
        self._is_lifted = True

    def wrap(self, services: Any) -> None:
        """Wraps the services of a lab with doubles as attributes."""
        for name in METHODS.keys() & vars(services).keys():
            service = getattr(services, name)
            for method in METHODS[name]:
                setattr(
                    service, method, self._wrapped(f"{name}.{method}", getattr(service, method))
                )

    def _wrapped(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(call)
        def refused(*arguments: Any, **named: Any) -> Any:
            if self._is_lifted or self._is_inside:  # a double may use its own methods
                return call(*arguments, **named)
            self._count_call(name)
            with self.unseen():
                return call(*arguments, **named)

        return refused

    def _count_call(self, name: str) -> None:
        self.made.append(name)
        if self._begin is not None and 0 <= len(self.made) - 1 - self._begin < self._count:
            method = name.rpartition(".")[2]
            if method in NAMED:
                raise Throttled(f"{name}: Rate exceeded")
            error = {"Code": "ThrottlingException", "Message": "Rate exceeded"}
            raise ClientError({"Error": error, "ResponseMetadata": {"HTTPStatusCode": 400}}, method)  # type: ignore[typeddict-item]

    @contextmanager
    def unseen(self) -> Iterator[None]:
        """Calls in this context are neither counted nor refused."""
        self._is_inside = True
        try:
            yield
        finally:
            self._is_inside = False


class Notices:
    """SNS and the event bus: the calls that an announcement makes."""

    def __init__(self) -> None:
        self.mails: list[str] = []

    def publish(self, **message: Any) -> None:
        self.mails.append(str(message["Subject"]))

    def put_events(self, **_: Any) -> dict[str, Any]:
        return {"Entries": []}


def standing_clock(now: float) -> SimpleNamespace:
    """For modules that use ``time``: no pause takes time."""
    return SimpleNamespace(time=lambda: now, sleep=lambda _: None, perf_counter=lambda: 0.0)
