"""Differences between a job's request and the request of a suite's base cell, with reasons."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from traindyno.core.documents.problems import join_path
from traindyno.core.s3_keys import is_s3_uri
from traindyno.core.suite.runs import trial_runs
from traindyno.core.suite.suite import Suite
from traindyno.sagemaker.job_settings import JobSettings
from traindyno.sagemaker.request import build_training_job_request
from traindyno.slices.imported.job import (
    SDK_CHANNELS,
    driver_arguments,
    toolkit_arguments,
)

# Settings in place of the lab's, which this machine may not know.
UNKNOWN_LAB = JobSettings(
    region="us-east-1",
    role_arn="arn:aws:iam::000000000000:role/lab",
    results_bucket="lab",
    source_s3_uri="s3://lab/sourcedir.tar.gz",
)
# The fields that CreateTrainingJob and DescribeTrainingJob share.
REQUEST_FIELDS = (
    "TrainingJobName",
    "AlgorithmSpecification",
    "HyperParameters",
    "InputDataConfig",
    "OutputDataConfig",
    "ResourceConfig",
    "StoppingCondition",
    "CheckpointConfig",
    "Environment",
    "ProfilerConfig",
    "RoleArn",
    "Tags",
    "VpcConfig",
    "EnableManagedSpotTraining",
    "EnableNetworkIsolation",
    "EnableInterContainerTrafficEncryption",
    "RetryStrategy",
    "RemoteDebugConfig",
    "InfraCheckConfig",
    "DebugHookConfig",
    "DebugRuleConfigurations",
    "TensorBoardOutputConfig",
    "ExperimentConfig",
    "ProfilerRuleConfigurations",
    "SessionChainingConfig",
)
OF_THE_LAB = "the lab has its own"
DEPLOYED_WITH = "it is of the lab, not of a suite: labs/LAB.toml has"
# The first that begins a difference's path counts.
REASONS = {
    "TrainingJobName": OF_THE_LAB,
    "RoleArn": OF_THE_LAB,
    "Tags": OF_THE_LAB,
    "OutputDataConfig.KmsKeyId": f"{DEPLOYED_WITH} output_key",
    "OutputDataConfig": OF_THE_LAB,
    "DebugHookConfig.S3OutputPath": OF_THE_LAB,
    "CheckpointConfig": "SageMaker copies the step log there, in the lab's bucket",
    "Environment.TRAINDYNO_": "the step log's folder and the run's id",
    "Environment.": "the lab sets it where EFA needs it",
    "ProfilerConfig": "no profiler runs during a measurement",
    "ProfilerRuleConfigurations": "no profiler runs during a measurement",
    "HyperParameters.sagemaker_": "the launcher of the training toolkit in AWS's images",
    "AlgorithmSpecification.ContainerEntrypoint": (
        "the SDK 3 starts its own drivers; a suite's script, the toolkit"
    ),
    "AlgorithmSpecification.ContainerArguments": (
        "the SDK 3 starts its own drivers; a suite's script, the toolkit"
    ),
    "AlgorithmSpecification.EnableSageMakerMetricsTimeSeries": (
        "as the SDK 2 asks for it with AWS's images"
    ),
    "InputDataConfig.sm_drivers": "the drivers of the SDK 3",
    "InputDataConfig.code": "the toolkit reads the code from sagemaker_submit_directory",
    "StoppingCondition.MaxPendingTimeInSeconds": "the lab bounds the wait for an accelerator",
    "StoppingCondition.MaxWaitTimeInSeconds": "limits.max_pending_seconds is at least 1800",
    "Arguments.": "the toolkit writes this argument in another way",
    "VpcConfig": f"{DEPLOYED_WITH} subnets and security_groups",
    "EnableInterContainerTrafficEncryption": f"{DEPLOYED_WITH} encrypt_traffic",
    "EnableNetworkIsolation": f"{DEPLOYED_WITH} isolate_network",
    "ResourceConfig.KeepAlivePeriodInSeconds": "runs that share a job pay for one start",
    "ResourceConfig.VolumeKmsKeyId": f"{DEPLOYED_WITH} volume_key",
}
NO_FIELD = "a suite has no field for it"
# Sections that are listed entry by entry, also where only one of the requests has them.
BY_NAME = ("Arguments", "Environment", "HyperParameters", "InputDataConfig", "Tags")
# The SDK names it where it is the default of the job.
FILE_MODE = "File"


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestDifference:
    """A difference between two requests of a training job.

    ``path`` is a path of the request, such as ``StoppingCondition.MaxPendingTimeInSeconds``.
    Channels, tags and metrics go by their names, and the script's arguments are below
    ``Arguments``.
    """

    path: str
    reason: str


def differences_of(
    job: Mapping[str, Any], suite: Suite, *, is_toolkit: bool
) -> tuple[RequestDifference, ...]:
    """Compare the job's request with the request of the suite's base cell.

    ``is_toolkit`` says that the training toolkit starts the job's script, and not the drivers of
    the SDK 3.
    """
    theirs = comparable(job, is_toolkit=is_toolkit)
    ours = comparable(base_request(suite), is_toolkit=True)
    return tuple(
        RequestDifference(path=path, reason=_reason(path)) for path in _unequal("", theirs, ours)
    )


def base_request(suite: Suite) -> dict[str, Any]:
    """Request of the suite's base cell, in a lab without settings; local code counts as staged."""
    source = suite.workload.source
    if source is not None and not is_s3_uri(source):
        suite = replace(suite, workload=replace(suite.workload, source=UNKNOWN_LAB.source_s3_uri))
    (run,) = trial_runs("import", [suite.baseline_cell], [1])
    return build_training_job_request(run, suite, attempt=1, settings=UNKNOWN_LAB)


def comparable(job: Mapping[str, Any], *, is_toolkit: bool) -> dict[str, Any]:
    """The request in a form to compare: its lists by name, its channels with their mode, and the
    arguments that its script gets.
    """
    request = {
        name: job[name] for name in REQUEST_FIELDS if job.get(name) not in (None, [], {}, False)
    }
    request["Tags"] = {tag["Key"]: tag["Value"] for tag in request.get("Tags", ())}
    algorithm = dict(request.get("AlgorithmSpecification", {}))
    algorithm["MetricDefinitions"] = {
        definition["Name"]: definition["Regex"]
        for definition in algorithm.get("MetricDefinitions", ())
    }
    request["AlgorithmSpecification"] = {
        name: value for name, value in algorithm.items() if value not in ([], {}, False, FILE_MODE)
    }
    mode = algorithm.get("TrainingInputMode", FILE_MODE)
    request["InputDataConfig"] = {
        channel["ChannelName"]: _channel(channel, mode)
        for channel in request.get("InputDataConfig", ())
    }
    values = request.pop("HyperParameters", {})
    if is_toolkit:
        request["Arguments"] = toolkit_arguments({"HyperParameters": values})
        request["HyperParameters"] = {
            name: text for name, text in values.items() if name.startswith("sagemaker_")
        }
    else:
        # The drivers write two hyphens before a name of one letter too.
        request["Arguments"] = {
            f"--{name}": text for name, text in driver_arguments(values).items()
        }
        request["HyperParameters"] = {}
    return request


def _channel(channel: Mapping[str, Any], mode: str) -> dict[str, Any]:
    source = channel["DataSource"]
    bucket = {"S3DataType": "S3Prefix", "S3DataDistributionType": "FullyReplicated"}
    inner = (
        {"S3DataSource": bucket | source["S3DataSource"]} if "S3DataSource" in source else source
    )
    if channel["ChannelName"] in SDK_CHANNELS:
        return dict(channel)
    more = {
        name: value for name, value in channel.items() if name not in ("DataSource", "ChannelName")
    }
    is_unset = {"CompressionType": "None", "RecordWrapperType": "None"}
    more = {name: value for name, value in more.items() if value != is_unset.get(name)}
    return {
        **more,
        "DataSource": inner,
        **({"InputMode": more.get("InputMode", mode)} if "S3DataSource" in inner else {}),
    }


def _unequal(path: str, theirs: Any, ours: Any) -> Iterator[str]:
    """Paths at which two requests differ; a section or channel that only one of them has is one
    difference.
    """
    for name in sorted({*theirs, *ours}):
        inner = join_path(path, name)
        a = theirs.get(name)
        b = ours.get(name)
        if a == b or (not a and not b):
            continue
        is_named = not path and name in BY_NAME
        if is_named or (isinstance(a, Mapping) and isinstance(b, Mapping)):
            yield from _unequal(inner, a or {}, b or {})
        else:
            yield inner


def _reason(path: str) -> str:
    return next(
        (reason for beginning, reason in REASONS.items() if path.startswith(beginning)), NO_FIELD
    )
