"""Lets one process of a host do work for the others, which wait for its folder and not in a
collective.
"""

import atexit
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from training.process.process_group import Topology

POLL_SECONDS = 0.05
_made: list[Path] = []


def made_once_per_host(topology: Topology, make: Callable[[Path], None]) -> Path:
    """The folder that ``make`` fills. If it fails, the launcher ends the processes that wait."""
    # Processes of one launch share their parent, two launches on one machine don't.
    owner = os.getppid() if topology.local_world_size > 1 else os.getpid()
    job = os.environ.get("TRAINING_JOB_NAME", "job")
    folder = Path(tempfile.gettempdir()) / f"traindyno-data-{job}-{owner}"
    if topology.local_rank > 0:
        while not folder.exists():
            time.sleep(POLL_SECONDS)
        return folder
    unfinished = Path(tempfile.mkdtemp(prefix=f"{folder.name}-"))
    _made.extend([unfinished, folder])
    make(unfinished)
    unfinished.rename(folder)
    return folder


@atexit.register
def remove_made_folders() -> None:
    """Removes the folders that this process has made.

    It is called explicitly where a process ends without its exit functions.
    """
    while _made:
        shutil.rmtree(_made.pop(), ignore_errors=True)
