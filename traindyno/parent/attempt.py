"""What the parts of a parent share while it runs."""

import os
import signal
import time
from pathlib import Path
from types import FrameType
from typing import NamedTuple, Optional

from traindyno.callbacks.process import launcher_started
from traindyno.core.jobs.journal_format import DEADLINE, TIME_LIMIT
from traindyno.parent.document import JobOrder
from traindyno.parent.ends import EndVerdict
from traindyno.parent.forking import ForkingLauncher
from traindyno.parent.host import Host
from traindyno.parent.journal import Journal
from traindyno.parent.leftovers import Devices
from traindyno.parent.peers import Peers

# A file that is older was not written for this job.
LONGEST_DOWNLOAD_SECONDS = 3600.0
EXIT_CODE = 128 + signal.SIGTERM


class TimeLeft:
    """What is left of the limits, on the monotonic clock.

    The job's limit counts from its begin, of which the parent sees the container's start.
    """

    def __init__(self, job: JobOrder, began_at: float) -> None:
        spent = max(time.time() - began_at, 0.0)
        self._deadline = time.monotonic() + job.max_job_seconds - job.ending_seconds - spent
        self._run_limit = job.max_run_seconds
        self._longest = 0.0

    @property
    def is_over(self) -> bool:
        return time.monotonic() >= self._deadline

    def fits_another(self) -> bool:
        """Whether a run as long as the longest of this attempt would end before the deadline."""
        return time.monotonic() + self._longest < self._deadline

    def took(self, seconds: float) -> None:
        self._longest = max(self._longest, seconds)

    def verdict(self, began: float, *, is_first: bool) -> Optional[EndVerdict]:
        """None while the run may go on. ``is_first``: it had the whole job for itself."""
        if self._run_limit is not None and time.monotonic() - began >= self._run_limit:
            return EndVerdict(reason=TIME_LIMIT)
        if self.is_over:
            return EndVerdict(reason=TIME_LIMIT) if is_first else EndVerdict(left=DEADLINE)
        return None


def job_began_at(host: Host) -> float:
    """Start of the container in epoch seconds, or the time of its configuration's files, which are
    written before.
    """
    started = launcher_started(host.environment) or time.time()
    try:
        folder = host.folder_of("SM_INPUT_CONFIG_DIR", "input/config")
        written = [file.stat().st_mtime for file in os.scandir(str(folder))]
    except OSError:
        written = []
    return min(
        [started, *(moment for moment in written if moment > started - LONGEST_DOWNLOAD_SECONDS)]
    )


class StopSignal:
    """Runs that have not ended are left for the next attempt."""

    def __init__(self) -> None:
        self.is_made = False

    def listen(self) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._make)

    def _make(self, _number: int, _frame: Optional[FrameType]) -> None:
        self.is_made = True


class JobAttempt(NamedTuple):
    """One start of a job.

    ``number`` is new for each start of a parent, and the same on all hosts. ``own_folder`` has the
    temporary files and caches of the run in progress. Its path stays, because processes that fork
    read it once.
    """

    number: str
    job: JobOrder
    host: Host
    peers: Peers
    journal: Journal
    devices: Devices
    launcher: ForkingLauncher
    stop: StopSignal
    time_left: TimeLeft
    own_folder: Path
