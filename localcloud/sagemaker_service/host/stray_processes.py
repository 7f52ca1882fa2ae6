"""Finds and kills the remaining processes of a job, by a mark in their environment."""

import contextlib
import os
import signal
import time
from pathlib import Path

from localcloud.sagemaker_service.jobs.job import TrainingJob
from localcloud.sagemaker_service.settings import ServiceSettings

MARK_VARIABLE = "TRAINDYNO_LOCAL_JOB"
LOOK_AGAIN_SECONDS = 0.05


def process_mark(job: TrainingJob, settings: ServiceSettings) -> str:
    """The mark has the service's folder, because another service on this machine may have a job of the same name."""
    return f"{settings.state_folder}:{job.arn}"


def end_stray_processes(mark: str) -> int:
    """Kills the processes and returns their number. Without /proc it finds none, and only supervisors end them."""
    ended: set[int] = set()
    while found := _marked_processes(mark):
        for process_id in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process_id, signal.SIGKILL)
        ended |= found
        time.sleep(LOOK_AGAIN_SECONDS)
    return len(ended)


def _marked_processes(mark: str) -> set[int]:
    wanted = f"{MARK_VARIABLE}={mark}".encode()
    found = set()
    for environment in Path("/proc").glob("[0-9]*/environ"):
        # The environment of a zombie is empty, and that of another user's process can't be read.
        with contextlib.suppress(OSError):
            if wanted in environment.read_bytes().split(b"\0"):
                found.add(int(environment.parent.name))
    return found
