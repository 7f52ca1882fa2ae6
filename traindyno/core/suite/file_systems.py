"""Inputs on a file system of the lab's network: ``fsx://<id>/<path>`` (FSx for Lustre), ``efs://<id>/<path>`` (EFS)."""

import re
from dataclasses import dataclass
from enum import StrEnum

ADDRESS = re.compile(r"(?P<kind>fsx|efs)://(?P<id>fs-[0-9a-f]{8,})(?P<path>/.*)?")


class FileSystemKind(StrEnum):
    FSX_FOR_LUSTRE = "FSxLustre"
    EFS = "EFS"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSystem:
    """``path`` is absolute; that of FSx for Lustre begins with the file system's mount name."""

    kind: FileSystemKind
    file_system_id: str
    path: str


def parse_file_system(address: str) -> FileSystem | None:
    """None for other addresses."""
    found = ADDRESS.fullmatch(address)
    if found is None:
        return None
    kind = FileSystemKind.FSX_FOR_LUSTRE if found["kind"] == "fsx" else FileSystemKind.EFS
    return FileSystem(kind=kind, file_system_id=found["id"], path=found["path"] or "/")
