"""The environment variables of the lab's functions, typed."""

import os
from dataclasses import MISSING, dataclass, fields
from typing import TypeVar

from traindyno.core.errors import TraindynoError
from traindyno.sagemaker.job_settings import JobSettings, read_lab_jobs

Kind = TypeVar("Kind", bound="LabEnvironment")


class EnvironmentIncomplete(TraindynoError):
    """A function was deployed without a variable that it needs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabEnvironment:
    """The variables of every function; each field is the variable of the same name in capitals."""

    lab: str
    table: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketEnvironment(LabEnvironment):
    bucket: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardEnvironment(BucketEnvironment):
    state_machine_arn: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeEnvironment(BucketEnvironment):
    aws_region: str
    topic_arn: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchEnvironment(BucketEnvironment):
    """The settings of training jobs.

    ``image_tags`` has the tag of each image of a lab that builds its own. It and ``lab_jobs`` are
    JSON.
    """

    aws_region: str
    training_role_arn: str
    source_s3_uri: str
    seconds_between_starts: str
    image_tags: str = "{}"
    lab_jobs: str = "{}"

    @property
    def job_settings(self) -> JobSettings:
        return JobSettings(
            region=self.aws_region,
            role_arn=self.training_role_arn,
            results_bucket=self.bucket,
            lab=self.lab,
            source_s3_uri=self.source_s3_uri,
            jobs=read_lab_jobs(self.lab_jobs),
            seconds_between_starts=float(self.seconds_between_starts),
        )


def read_environment(kind: type[Kind]) -> Kind:
    names = {field.name: field.name.upper() for field in fields(kind)}
    required = [names[field.name] for field in fields(kind) if field.default is MISSING]
    missing = [name for name in required if name not in os.environ]
    if missing:
        raise EnvironmentIncomplete(
            f"the function lacks the variables {', '.join(missing)}; it needs {', '.join(required)}"
        )
    return kind(**{field: os.environ[name] for field, name in names.items() if name in os.environ})
