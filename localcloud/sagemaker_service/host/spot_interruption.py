"""Plans when a local spot job loses its instances: after a random step, with or without notice."""

import random
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from localcloud.sagemaker_service.jobs.faults import FaultInjector, JobFault
from localcloud.sagemaker_service.jobs.job import TrainingJob

PAUSE_SECONDS = 0.5  # the time without instances
STEP_MARK = b'"kind":"step"'


@dataclass(frozen=True, slots=True, kw_only=True)
class SpotInterruption:
    """``after_steps`` counts from the job's latest start. A notice is SIGTERM, after which files are uploaded."""

    after_steps: int
    has_notice: bool

    def is_due(self, step_logs: Iterable[Path]) -> bool:
        """Whether these logs of first processes have so many steps. A step is in the log file within a second."""
        return sum(path.read_bytes().count(STEP_MARK) for path in step_logs) >= self.after_steps


def plan_interruptions(job: TrainingJob, faults: FaultInjector, steps: int) -> tuple[SpotInterruption, ...]:
    """An interruption for each time that the job loses its instances. The seed and the job's name decide. ``steps``: of
    all its runs.
    """
    if not job.is_spot or faults.job_fault(job.name) is not JobFault.SPOT_INTERRUPTION:
        return ()
    dice = faults.dice("interruption", job.name)
    return tuple(_interruption(dice, max(steps, 2), faults) for _ in range(faults.current.spot_interruptions))


def _interruption(dice: random.Random, steps: int, faults: FaultInjector) -> SpotInterruption:
    return SpotInterruption(
        after_steps=dice.randrange(1, steps), has_notice=dice.random() < faults.current.spot_notice_fraction
    )
