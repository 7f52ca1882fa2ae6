"""How far a job's step log was when a checkpoint was completed: the sizes of its files, which only grow.

Checkpoints and logs reach S3 in no defined order. A run that continues after a checkpoint whose steps' lines were lost
with the instance would never log these steps.
"""

import os
from pathlib import Path
from typing import Dict, Mapping, Optional

from traindyno.callbacks.process import this_process
from traindyno.core.step_log.line import DIRECTORY_VARIABLE

LogSizes = Mapping[str, int]


def measure_log(environment: Mapping[str, str] = os.environ) -> Dict[str, int]:
    """Bytes of the newest log of each process of this job on this host, by the file's path below the log's folder."""
    directory = environment.get(DIRECTORY_VARIABLE)
    if not directory:
        return {}
    job = Path(directory, this_process(environment).job_name)
    newest = {path.name.split(".")[0]: path for path in sorted(job.glob("rank-*.jsonl"))}
    return {path.relative_to(directory).as_posix(): path.stat().st_size for path in newest.values()}


def problem_of_log(sizes: LogSizes, environment: Mapping[str, str] = os.environ) -> Optional[str]:
    """Why the log lacks lines that it had; None if it has them, and outside Traindyno, where nothing reads it."""
    directory = environment.get(DIRECTORY_VARIABLE)
    for name, size in sorted(sizes.items()) if directory else ():
        path = Path(str(directory), name)
        found = path.stat().st_size if path.is_file() else 0
        if found < size:
            return "the log of its steps, {}, has {} bytes; expected at least {}".format(path, found, size)
    return None
