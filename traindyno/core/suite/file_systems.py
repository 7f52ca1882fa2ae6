"""Where a suite's inputs are: on a file system of the lab's network, ``fsx://<id>/<path>`` (FSx for Lustre) or
``efs://<id>/<path>`` (EFS), in S3, on the Hub or on this machine.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from traindyno.core.s3_keys import is_s3_uri

CHANNELS = "workload.channels."
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


def is_remote(path: str) -> bool:
    """Whether a path is in S3 or on a file system of the lab's network; a Hub id may also be a path of this machine."""
    return is_s3_uri(path) or parse_file_system(path) is not None


def workload_paths(workload: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Every path of data, tokenizer, model and channels in a workload's document, each with its field in the suite."""
    for section in ("dataset", "tokenizer", "model"):
        part = workload.get(section)
        if isinstance(part, str):
            yield f"workload.{section}", part
        elif isinstance(part, Mapping) and isinstance(part.get("path"), str):
            yield f"workload.{section}.path", part["path"]
    channels = workload.get("channels")
    for name, path in channels.items() if isinstance(channels, Mapping) else ():
        if isinstance(path, str):
            yield f"{CHANNELS}{name}", path
