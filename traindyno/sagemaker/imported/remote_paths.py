"""Paths of a job that ran elsewhere: a path of this machine would send files that the job never had."""

import re
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

from traindyno.core.documents.problems import shown
from traindyno.core.s3_keys import is_s3_uri
from traindyno.core.suite.data_formats import COMPRESSIONS, FORMATS, UNREADABLE
from traindyno.core.suite.file_systems import parse_file_system

HUB_NAME = re.compile(r"[A-Za-z0-9][\w.\-]*(/[A-Za-z0-9][\w.\-]*)?")
FILE_SUFFIXES = {*FORMATS, *COMPRESSIONS, *UNREADABLE, ".txt"}
NAMED_PARTS = ("dataset", "tokenizer", "model")


def local_path(workload: Mapping[str, Any]) -> str | None:
    """The first path that may be one of this machine, with what is accepted; None if there is none."""
    for place, path in _paths(workload):
        is_hub_name = not place.startswith("channels.") and _is_hub_name(path)
        if not (is_s3_uri(path) or parse_file_system(path) is not None or is_hub_name):
            hub = "" if place.startswith("channels.") else ", or the name of a model or dataset of the Hub"
            return f"workload.{place}: got {shown(path)}, expected s3://…, fsx://… or efs://…{hub}"
    return None


def _paths(workload: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name in NAMED_PARTS:
        part = workload.get(name)
        if isinstance(part, str):
            yield name, part
        elif isinstance(part, Mapping) and isinstance(part.get("path"), str):
            yield f"{name}.path", part["path"]
    channels = workload.get("channels")
    for name, path in channels.items() if isinstance(channels, Mapping) else ():
        if isinstance(path, str):
            yield f"channels.{name}", path


def _is_hub_name(path: str) -> bool:
    return HUB_NAME.fullmatch(path) is not None and PurePosixPath(path).suffix not in FILE_SUFFIXES
