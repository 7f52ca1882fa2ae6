"""A setting that can't go with the others of its cell."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Impossible:
    """``field`` is the setting to change."""

    field: str
    reason: str
