"""Plans when a local spot job loses its instances: after a random step, with or without notice."""

import random
from dataclasses import dataclass
from pathlib import Path

from localcloud.sagemaker_service.jobs.faults import FaultInjector, JobFault
from localcloud.sagemaker_service.jobs.job import TrainingJob
from localcloud.sagemaker_service.jobs.job_work import read_work

PAUSE_SECONDS = 0.5  # the time without instances
STEP_MARK = b'"kind":"step"'


@dataclass(frozen=True, slots=True, kw_only=True)
class SpotInterruption:
    """``after_steps`` counts from the job's latest start. A notice is SIGTERM, after which files are uploaded."""

    after_steps: int
    has_notice: bool

    def is_due(self, step_logs: Path) -> bool:
        """Whether the job's first process has logged these steps. A step is in the log file within a second."""
        files = step_logs.glob("rank-00000.*.jsonl")
        newest = max(files, key=lambda path: path.name, default=None)
        return newest is not None and newest.read_bytes().count(STEP_MARK) >= self.after_steps


def plan_interruptions(job: TrainingJob, faults: FaultInjector) -> tuple[SpotInterruption, ...]:
    """An interruption for each time that the job loses its instances. The seed and the job's name decide."""
    if not job.is_spot or faults.job_fault(job.name) is not JobFault.SPOT_INTERRUPTION:
        return ()
    steps = max(read_work(job).steps, 2)
    dice = faults.dice("interruption", job.name)
    return tuple(_interruption(dice, steps, faults) for _ in range(faults.current.spot_interruptions))


def _interruption(dice: random.Random, steps: int, faults: FaultInjector) -> SpotInterruption:
    return SpotInterruption(
        after_steps=dice.randrange(1, steps), has_notice=dice.random() < faults.current.spot_notice_fraction
    )
