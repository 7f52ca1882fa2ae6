"""Paths of a job that ran elsewhere: a path of this machine would send files that the job never had."""

import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

from traindyno.core.documents.problems import shown
from traindyno.core.suite.data_formats import COMPRESSIONS, FORMATS, UNREADABLE
from traindyno.core.suite.file_systems import CHANNELS, is_remote, workload_paths

HUB_NAME = re.compile(r"[A-Za-z0-9][\w.\-]*(/[A-Za-z0-9][\w.\-]*)?")
FILE_SUFFIXES = {*FORMATS, *COMPRESSIONS, *UNREADABLE, ".txt"}


def local_path(workload: Mapping[str, Any]) -> str | None:
    """The first path that may be one of this machine, with what is accepted; None if there is none."""
    for place, path in workload_paths(workload):
        takes_hub_name = not place.startswith(CHANNELS)
        if not is_remote(path) and not (takes_hub_name and _is_hub_name(path)):
            hub = ", or the name of a model or dataset of the Hub" if takes_hub_name else ""
            return f"{place}: got {shown(path)}, expected s3://…, fsx://… or efs://…{hub}"
    return None


def _is_hub_name(path: str) -> bool:
    return HUB_NAME.fullmatch(path) is not None and PurePosixPath(path).suffix not in FILE_SUFFIXES
