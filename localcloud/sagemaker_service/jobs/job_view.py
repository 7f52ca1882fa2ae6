"""Converts a job to what the API and EventBridge show."""

import uuid
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from localcloud.environment import ACCOUNT, REGION
from localcloud.sagemaker_service.jobs.job import (
    TERMINAL,
    Engine,
    Status,
    TrainingJob,
    whole_seconds,
)

ECHOED = (
    "HyperParameters",
    "AlgorithmSpecification",
    "RoleArn",
    "InputDataConfig",
    "OutputDataConfig",
    "ResourceConfig",
    "VpcConfig",
    "StoppingCondition",
    "CheckpointConfig",
    "DebugHookConfig",
    "ExperimentConfig",
    "DebugRuleConfigurations",
    "TensorBoardOutputConfig",
    "ProfilerConfig",
    "ProfilerRuleConfigurations",
    "Environment",
    "RetryStrategy",
    "RemoteDebugConfig",
    "InfraCheckConfig",
)
ECHOED_IN_EVENTS = ECHOED[:8]
DETAIL_TYPE = "SageMaker Training Job State Change"


def described(job: TrainingJob) -> dict[str, Any]:
    """The DescribeTrainingJob answer."""
    view: dict[str, Any] = {name: job.request[name] for name in ECHOED if name in job.request}
    view |= summary(job)
    view["StoppingCondition"] = {"MaxRuntimeInSeconds": job.max_runtime_seconds} | view.get(
        "StoppingCondition", {}
    )
    for flag in (
        "EnableNetworkIsolation",
        "EnableInterContainerTrafficEncryption",
        "EnableManagedSpotTraining",
    ):
        view[flag] = job.request.get(flag, False)
    view["SecondaryStatusTransitions"] = [
        without_none(
            Status=step.status,
            StartTime=_seconds(step.start_ms),
            EndTime=_seconds(step.end_ms),
            StatusMessage=step.message,
        )
        for step in job.transitions
    ]
    view |= without_none(
        FailureReason=job.failure_reason,
        TrainingStartTime=_seconds(job.training_start_ms),
        BillableTimeInSeconds=job.billable_seconds,
        TrainingTimeInSeconds=_training_seconds(job),
    )
    if job.engine is Engine.PROCESS and job.status in TERMINAL and job.status is not Status.FAILED:
        name = "model/" if is_uncompressed(job) else "model.tar.gz"
        view["ModelArtifacts"] = {"S3ModelArtifacts": f"{output_uri(job)}/output/{name}"}
    return view


def summary(job: TrainingJob) -> dict[str, Any]:
    """The job as ListTrainingJobs shows it."""
    return without_none(
        TrainingJobName=job.name,
        TrainingJobArn=job.arn,
        CreationTime=_seconds(job.created_ms),
        TrainingEndTime=_seconds(job.training_end_ms),
        LastModifiedTime=_seconds(job.modified_ms),
        TrainingJobStatus=job.status,
        SecondaryStatus=job.secondary_status,
    )


def state_change_event(job: TrainingJob) -> dict[str, Any]:
    """The EventBridge event: its times are epoch milliseconds, its tags a map, and it has no
    billable seconds.
    """
    detail = {name: job.request[name] for name in ECHOED_IN_EVENTS if name in job.request}
    detail |= without_none(
        TrainingJobName=job.name,
        TrainingJobArn=job.arn,
        TrainingJobStatus=job.status,
        SecondaryStatus=job.secondary_status,
        FailureReason=job.failure_reason,
        CreationTime=job.created_ms,
        TrainingStartTime=job.training_start_ms,
        TrainingEndTime=job.training_end_ms,
        LastModifiedTime=job.modified_ms,
        Tags=dict(job.tags),
    )
    detail["SecondaryStatusTransitions"] = [
        without_none(
            Status=step.status,
            StartTime=step.start_ms,
            EndTime=step.end_ms,
            StatusMessage=step.message,
        )
        for step in job.transitions
    ]
    return {
        "version": "0",
        "id": str(uuid.uuid4()),
        "detail-type": DETAIL_TYPE,
        "source": "aws.sagemaker",
        "account": ACCOUNT,
        "time": datetime.fromtimestamp(job.modified_ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "region": REGION,
        "resources": [job.arn],
        "detail": detail,
    }


def output_uri(job: TrainingJob) -> str:
    """The S3 prefix of the job's artifacts, without a final slash."""
    configured: Mapping[str, str] = job.request["OutputDataConfig"]
    return f"{configured['S3OutputPath'].rstrip('/')}/{job.name}"


def is_uncompressed(job: TrainingJob) -> bool:
    return bool(job.request["OutputDataConfig"].get("CompressionType") == "NONE")


def without_none(**members: Any) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}


def _training_seconds(job: TrainingJob) -> int | None:
    if job.training_start_ms is None or job.training_end_ms is None:
        return None
    return whole_seconds(job.training_end_ms - job.training_start_ms)


def _seconds(epoch_ms: int | None) -> float | None:
    return None if epoch_ms is None else epoch_ms / 1000
