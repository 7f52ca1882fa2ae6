"""What a run leaves on the host after its processes: shared memory and the device's memory."""

import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Callable, Dict, Iterator, List, Optional

from traindyno.parent.disk import remove

LOOK_AGAIN_SECONDS = 0.5
ANSWER_SECONDS = 30.0
# By so much the used memory of an idle driver may differ from look to look.
DEVICE_MARGIN_MEBIBYTES = 256
QUERY = ("--query-gpu=memory.used", "--format=csv,noheader,nounits")


def shared_memory(folder: Optional[Path]) -> Dict[str, int]:
    """Inode of each name in shared memory. A name that is used again has another inode."""
    try:
        return {file.name: file.inode() for file in os.scandir(str(folder))} if folder else {}
    except OSError:
        return {}


def remove_shared_memory(folder: Optional[Path], before: Dict[str, int]) -> int:
    """Remove what is new since ``before``, of this user, and not used by a living process. Return
    how many.
    """
    new = [name for name, inode in shared_memory(folder).items() if before.get(name) != inode]
    if folder is None or not new:
        return 0
    lead = "{}/".format(folder)
    used = {path[len(lead) :].split("/")[0] for path in _open_and_mapped() if path.startswith(lead)}
    left = [folder / name for name in new if name not in used and _is_own(folder / name)]
    for path in left:
        remove(path)
    return len(left)


def _is_own(path: Path) -> bool:
    try:
        return path.lstat().st_uid == os.geteuid()
    except OSError:
        return False


def _open_and_mapped() -> Iterator[str]:
    for process in Path("/proc").glob("[0-9]*"):
        try:
            maps = (process / "maps").read_text(errors="replace")
            yield from (
                line.partition("/")[1] + line.partition("/")[2] for line in maps.splitlines()
            )
            yield from map(_target, (process / "fd").iterdir())
        except OSError:
            continue


def _target(link: Path) -> str:
    try:
        return os.readlink(str(link))
    except OSError:
        return ""


class Devices:
    """The memory of NVIDIA devices, as nvidia-smi says.

    On a host without it, there is nothing to wait for.
    """

    def __init__(self, program: str = "nvidia-smi") -> None:
        self._program = shutil.which(program)
        self._at_start = self._used()
        self.is_free = True

    def wait_until_free(self, meanwhile: Callable[[], None], seconds: float) -> int:
        """MiB used in addition to the start's, after at most ``seconds``."""
        if self._at_start is None:
            return 0
        end = time.monotonic() + seconds
        while True:
            used = self._used() or ()
            left = max((now - before for now, before in zip(used, self._at_start)), default=0)
            self.is_free = left <= DEVICE_MARGIN_MEBIBYTES
            if self.is_free or time.monotonic() >= end:
                return 0 if self.is_free else left
            meanwhile()
            time.sleep(LOOK_AGAIN_SECONDS)

    def _used(self) -> Optional[List[int]]:
        if self._program is None:
            return None
        try:
            answer = subprocess.run(
                [self._program, *QUERY], stdout=subprocess.PIPE, timeout=ANSWER_SECONDS, check=True
            ).stdout
            return [int(line) for line in answer.decode().split()]
        except (OSError, ValueError, subprocess.SubprocessError):
            return None
