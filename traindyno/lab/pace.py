"""How long a function may still work, and how it waits between requests that AWS counts."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    may_go_on: Callable[[], bool]
    sleep: Callable[[float], None]
