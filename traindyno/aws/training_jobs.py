"""SageMaker's training job operations; AWS's errors become this project's."""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from botocore.exceptions import BotoCoreError, ClientError, ParamValidationError

from traindyno.aws.client_errors import (
    AwsError,
    error_code,
    error_message,
    is_throttling,
    temporary,
)
from traindyno.core.errors import SlotUnavailable, Throttled, TraindynoError
from traindyno.core.jobs.outcome import Outcome
from traindyno.sagemaker.job_description import read_ages
from traindyno.sagemaker.job_names import job_name_of

if TYPE_CHECKING:
    from mypy_boto3_sagemaker import SageMakerClient

LIMIT_TEXT = re.compile(
    r"is (?P<limit>\d+) Instances?, .*request delta of (?P<asked>\d+) Instances?"
)
WORKING: tuple[Literal["InProgress"], Literal["Stopping"]] = ("InProgress", "Stopping")


class JobRefused(TraindynoError):
    """SageMaker refuses this job, and would refuse it again; ``outcome`` is the run's."""

    def __init__(self, outcome: Outcome, message: str) -> None:
        self.outcome = outcome
        super().__init__(message)


class TrainingJobs:
    def __init__(self, sagemaker: "SageMakerClient") -> None:
        self._sagemaker = sagemaker

    def start(self, request: Mapping[str, Any]) -> None:
        """Safe to repeat.

        ServiceFault leaves open whether the job exists; every other error says that it doesn't.
        """
        job_name = job_name_of(request)
        try:
            self._sagemaker.create_training_job(**request)
        except AwsError as error:
            if isinstance(error, ClientError) and error_code(error) == "ResourceInUse":
                return  # a repeated delivery of this same attempt: the job is already ours
            raise _refusal(job_name, error) from error

    def describe(self, job_name: str) -> dict[str, Any] | None:
        try:
            return dict(self._sagemaker.describe_training_job(TrainingJobName=job_name))
        except ClientError as error:
            if _is_unknown_job(error):
                return None
            raise

    def stop(self, job_name: str) -> bool:
        """False if there is nothing to stop: the job has ended, or does not exist."""
        try:
            self._sagemaker.stop_training_job(TrainingJobName=job_name)
        except ClientError as error:
            if error_code(error) in {"ValidationException", "ResourceNotFound"}:
                return False
            if is_throttling(error):
                raise Throttled(f"{job_name}: {error}") from error
            raise
        return True

    def working(self, name_part: str, *, now: float) -> dict[str, float]:
        """Jobs whose names contain ``name_part`` and that have not ended: name → age in seconds, by
        SageMaker's own clock.
        """
        pages = self._sagemaker.get_paginator("list_training_jobs")
        ages: dict[str, float] = {}
        for status in WORKING:
            for page in pages.paginate(
                NameContains=name_part, StatusEquals=status, PaginationConfig={"PageSize": 100}
            ):
                ages |= read_ages(page, now=now)
        return ages


def _refusal(job_name: str, error: ClientError | BotoCoreError) -> Exception:
    text = f"{job_name}: {error}"
    retried = temporary(error, job_name)
    if retried:
        return retried
    if not isinstance(error, ClientError):
        # A request that this version of boto3 does not know fails at every attempt.
        return (
            JobRefused(Outcome.INTERNAL_ERROR, text)
            if isinstance(error, ParamValidationError)
            else error
        )
    if error_code(error) == "ResourceLimitExceeded" and not _never_fits(error):
        return SlotUnavailable(text)
    return JobRefused(_refused_for(error), text)


def _refused_for(error: ClientError) -> Outcome:
    match error_code(error):
        case "ResourceLimitExceeded":
            return Outcome.QUOTA_EXCEEDED
        case "AccessDeniedException" | "AccessDenied" | "UnauthorizedOperation":
            return Outcome.PERMISSION_ERROR
        case "ValidationException" if _names(
            error, "AccessDenied", "assume", "not authorized", "permission"
        ):
            return Outcome.PERMISSION_ERROR
        case "ValidationException" if _names(error, "image", "ECR"):
            return Outcome.IMAGE_ERROR
    return Outcome.INTERNAL_ERROR


def _never_fits(error: ClientError) -> bool:
    """Whether the limit is below the job's own number of instances, so that waiting does not
    help.
    """
    match = LIMIT_TEXT.search(error_message(error))
    return bool(match) and int(match["limit"]) < int(match["asked"])  # type: ignore[index]


def _names(error: ClientError, *words: str) -> bool:
    return any(word.lower() in error_message(error).lower() for word in words)


def _is_unknown_job(error: ClientError) -> bool:
    # SageMaker answers a describe of an unknown name with a validation error.
    return error_code(error) == "ResourceNotFound" or (
        error_code(error) == "ValidationException" and "not found" in error_message(error).lower()
    )
