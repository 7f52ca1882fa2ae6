"""Versions of stored documents: an older one is migrated step by step, a newer or unknown one is refused."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from traindyno.core.documents.problems import shown
from traindyno.core.errors import TraindynoError

Document = dict[str, Any]
Migration = Callable[[Document], Document]


class VersionUnknown(TraindynoError):
    """A stored document has a version that this Traindyno can't read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """One kind of stored document.

    ``migrations``: version → the function that makes the next version of a document. ``unmarked``: the version of
    documents without one; None if every document has one. ``key``: the field that holds the version.
    """

    name: str
    version: int
    migrations: Mapping[int, Migration] = field(default_factory=dict)
    unmarked: int | None = None
    key: str = "version"

    def mark(self, document: Mapping[str, Any]) -> Document:
        """The document with the current version."""
        return {self.key: self.version, **{name: value for name, value in document.items() if name != self.key}}

    def read(self, document: Mapping[str, Any]) -> Document:
        """The document in the form of the current version, without its version; raises VersionUnknown."""
        found = document.get(self.key, self.unmarked)
        if isinstance(found, bool) or not isinstance(found, int) or found not in self.readable:
            raise VersionUnknown(self._refusal(found))
        migrated = {name: value for name, value in document.items() if name != self.key}
        for version in range(found, self.version):
            migrated = self.migrations[version](migrated)
        return migrated

    @property
    def readable(self) -> range:
        """The versions that can be read: the current one, and those from which migrations lead to it."""
        oldest = self.version
        while oldest - 1 in self.migrations:
            oldest -= 1
        return range(oldest, self.version + 1)

    def _refusal(self, found: object) -> str:
        versions = self.readable
        accepted = f"{versions[0]} to {versions[-1]}" if len(versions) > 1 else str(self.version)
        is_newer = isinstance(found, int) and found > self.version
        hint = " of a newer Traindyno (update this one)" if is_newer else ""
        given = f"no {self.key}" if found is None else f"{self.key} {shown(found)}{hint}"
        return f"{self.name}: got {given}, expected {accepted}"
