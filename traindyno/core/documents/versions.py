"""Versions of stored documents. A document of another version is refused."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from traindyno.core.documents.problems import shown
from traindyno.core.errors import TraindynoError

Document = dict[str, Any]
VERSION = "version"  # the field that holds it


class VersionUnknown(TraindynoError):
    """A stored document has a version that this Traindyno can't read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """One kind of stored document."""

    name: str
    version: int

    def mark(self, document: Mapping[str, Any]) -> Document:
        """The document with the current version."""
        return {
            VERSION: self.version,
            **{name: value for name, value in document.items() if name != VERSION},
        }

    def read(self, document: Mapping[str, Any]) -> Document:
        """The document without its version; raises VersionUnknown."""
        version = document.get(VERSION)
        if isinstance(version, bool) or version != self.version:
            given = (
                f"no {VERSION}"
                if version is None
                else f"{VERSION} {shown(version)} of another Traindyno"
            )
            raise VersionUnknown(f"{self.name}: got {given}, expected {self.version}")
        return {name: value for name, value in document.items() if name != VERSION}
