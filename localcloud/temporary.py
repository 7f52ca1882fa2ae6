"""The temporary folder of the local cloud, below its home: what it removes there, it has made."""

import shutil
from pathlib import Path

from localcloud.home import Home

FOLDER = "tmp"
# Each job has a folder of this name in it, which is removed when the job has ended.
TEMPORARY_PREFIX = "j-"
# Workers of data loaders meet at sockets below TMPDIR, as at
# /j-xxxxxxxx/r-xxxxxxxx/run/pymp-xxxxxxxx/listener-1234567-0-xxxxxxxx; Linux allows 107.
LONGEST_SOCKET_BYTES = 107
JOB_SOCKET_BYTES = 68


def make_temporary_folder(home: Home, *leads: str) -> Path:
    """Removes what processes that were killed have left there under these names."""
    folder = home.state(FOLDER)
    folder.mkdir(mode=0o700, exist_ok=True)
    for lead in leads:
        for left in folder.glob(f"{lead}*"):
            shutil.rmtree(left, ignore_errors=True)
    return folder


def job_temporary_environment(home: Home) -> dict[str, str]:
    """TMPDIR for the service that runs jobs.

    It is empty where the home's path is too long: then jobs have folders in the person's TMPDIR.
    """
    folder = make_temporary_folder(home, TEMPORARY_PREFIX)
    is_short = len(str(folder).encode()) + JOB_SOCKET_BYTES <= LONGEST_SOCKET_BYTES
    return {"TMPDIR": str(folder)} if is_short else {}
