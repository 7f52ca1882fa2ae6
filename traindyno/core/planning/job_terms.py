"""What a job may use at most, whether it is submitted for a run, for several runs or for a
preparation.
"""

from dataclasses import dataclass
from decimal import Decimal

from traindyno.core.costs.prices import cost_usd
from traindyno.core.instances.instance_types import LOCAL_PREFIX
from traindyno.core.jobs.job import AttemptOwner, runs_of
from traindyno.core.run.settings import Settings
from traindyno.core.run.tokens import DataPreparation
from traindyno.core.suite.job_time import (
    ENDING_SECONDS,
    IMAGE_SECONDS,
    MARGIN_SECONDS,
    STOP_SECONDS,
    UPLOAD_SECONDS,
)
from traindyno.core.suite.preparation import preparation_seconds
from traindyno.core.suite.suite import Suite


@dataclass(frozen=True, slots=True, kw_only=True)
class JobTerms:
    instance_type: str
    instance_count: int
    max_job_seconds: int

    @property
    def image_seconds(self) -> int:
        """Seconds for the image. This machine has its images already."""
        return 0 if self.instance_type.startswith(LOCAL_PREFIX) else IMAGE_SECONDS

    @property
    def longest_seconds(self) -> int:
        """The longest time for which one attempt may be billed: its image, to its limit, its stop,
        its upload.
        """
        return self.image_seconds + self.max_job_seconds + ENDING_SECONDS

    @property
    def longest_text(self) -> str:
        """The longest time of a job, with its parts."""
        image = f"{self.image_seconds} s for the image, " if self.image_seconds else ""
        return (
            f"{self.longest_seconds} s: {image}{self.max_job_seconds} s to its limit, "
            f"{STOP_SECONDS} s to stop, {UPLOAD_SECONDS} s to upload, {MARGIN_SECONDS} s of margin"
        )

    def worst_case_usd(self, usd_per_hour: Decimal) -> Decimal:
        return cost_usd(self.longest_seconds, self.instance_count, usd_per_hour)


def job_terms(owner: AttemptOwner, suite: Suite) -> JobTerms:
    if isinstance(owner, DataPreparation):
        return preparation_terms(owner.instance, suite)
    first, *_ = runs_of(owner)  # runs that share a job agree in all that it fixes
    return run_terms(first.cell.settings, suite)


def preparation_terms(instance: str, suite: Suite) -> JobTerms:
    return JobTerms(
        instance_type=instance,
        instance_count=1,
        max_job_seconds=preparation_seconds(suite),
    )


def run_terms(settings: Settings, suite: Suite) -> JobTerms:
    """The terms of each run with these settings."""
    return JobTerms(
        instance_type=settings.instance,
        instance_count=settings.instance_count,
        max_job_seconds=suite.limits.max_job_seconds,
    )
