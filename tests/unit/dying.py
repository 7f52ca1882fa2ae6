"""Callers that die before or after any of their calls, and are tried again."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.unit.lab_in_memory import MemoryLab

BUCKET_CALLS = ("find", "write", "copy", "copy_large", "renew", "delete", "list_sizes")
TABLE_CALLS = ("get", "put", "update", "write_all", "query")


class Died(BaseException):
    """The process of a client was killed."""


@dataclass
class Calls:
    """Of a client, by their number from 1; it dies before or after the call ``last``."""

    last: int = 0
    is_after: bool = False
    made: int = 0

    def through(self, service: Any, names: tuple[str, ...]) -> None:
        for name in names:
            setattr(service, name, self._counted(getattr(service, name)))

    def through_lab(self, lab: MemoryLab) -> None:
        self.through(lab.objects, BUCKET_CALLS)
        self.through(lab.table, TABLE_CALLS)

    def _counted(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any, **named: Any) -> Any:
            self.made += 1
            is_last = self.made == self.last
            if is_last and not self.is_after:
                raise Died
            try:
                return call(*arguments, **named)
            finally:
                if is_last:
                    raise Died

        return counted


def deaths(make: Callable[[Calls], Callable[[], Any]]) -> Iterator[Callable[[], Any]]:
    """A command for each call and side at which it died, to be tried again."""
    most = Calls()
    make(most)()
    assert most.made
    for number in range(1, most.made + 1):
        for is_after in (False, True):
            command = make(Calls(last=number, is_after=is_after))
            with pytest.raises(Died):
                command()
            yield command
