"""A CreateTrainingJob request, or DescribeTrainingJob's answer, as the document of a suite with
this one cell.

All differences between the job's request and that of the suite's base cell have their reason.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from traindyno.core.documents.plain import plain_values
from traindyno.core.documents.problems import join_path
from traindyno.core.errors import TraindynoError
from traindyno.core.instances.instance_types import close_instance_types, find_instance_type
from traindyno.core.jobs.journal_format import PROGRAM as SHARED_PROGRAM
from traindyno.core.run.settings import Settings
from traindyno.core.s3_keys import is_s3_uri
from traindyno.core.suite.checks.job_limits_check import OWN_ENVIRONMENT_PREFIX, TRAIN_CHANNEL
from traindyno.core.suite.checks.secrets_check import find_secrets
from traindyno.core.suite.checks.suite_check import NAME_CHARACTERS, parse_suite
from traindyno.core.suite.choices import InputMode, Jobs, Purchase, Task
from traindyno.core.suite.runs import trial_runs
from traindyno.core.suite.suite import PENDING_SECONDS, Suite
from traindyno.sagemaker.job_description import UnknownJobStatus, has_ended
from traindyno.sagemaker.job_settings import JobSettings
from traindyno.sagemaker.request import build_training_job_request
from traindyno.slices.imported.job import (
    SDK_CHANNELS,
    Drivers,
    JobNotImportable,
    driver_arguments,
    has_nul,
    is_built_in,
    job_name,
    local_path,
    read_driver_program,
    read_program,
    refuse_excess,
    refuse_secrets,
    refuse_wrong_shape,
    toolkit_arguments,
    toolkit_values,
    without_secrets,
)

# Of the lab that will run the suite, which this machine may not know.
UNKNOWN_LAB = JobSettings(
    region="us-east-1",
    role_arn="arn:aws:iam::000000000000:role/lab",
    results_bucket="lab",
    source_s3_uri="s3://lab/sourcedir.tar.gz",
)
# The fields that CreateTrainingJob and DescribeTrainingJob share.
REQUEST_FIELDS = (
    *(
        "TrainingJobName",
        "AlgorithmSpecification",
        "HyperParameters",
        "InputDataConfig",
        "OutputDataConfig",
    ),
    *(
        "ResourceConfig",
        "StoppingCondition",
        "CheckpointConfig",
        "Environment",
        "ProfilerConfig",
        "RoleArn",
        "Tags",
    ),
    *(
        "VpcConfig",
        "EnableManagedSpotTraining",
        "EnableNetworkIsolation",
        "EnableInterContainerTrafficEncryption",
    ),
    *(
        "RetryStrategy",
        "RemoteDebugConfig",
        "InfraCheckConfig",
        "DebugHookConfig",
        "DebugRuleConfigurations",
    ),
    *(
        "TensorBoardOutputConfig",
        "ExperimentConfig",
        "ProfilerRuleConfigurations",
        "SessionChainingConfig",
    ),
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
# SageMaker's own, for a request without a limit.
DEFAULT_RUNTIME_SECONDS = 86_400
# What no job says; a document without it is not accepted.
UNDECIDED: Mapping[str, Any] = {
    "workload": {"examples": 1},
    "limits": {"max_usd": 1, "max_hours": 1},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestDifference:
    """``path``: of the request, such as ``StoppingCondition.MaxPendingTimeInSeconds``; channels,
    tags and metrics by their names, the script's arguments below ``Arguments``.
    """

    path: str
    reason: str


def differences_of(
    job: Mapping[str, Any], suite: Suite, *, is_toolkit: bool
) -> tuple[RequestDifference, ...]:
    """``is_toolkit``: the training toolkit starts the job's script, and not the drivers of the SDK
    3.
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
    """The request with its lists by name, its channels with their mode, and the arguments that its
    script gets.
    """
    request = {
        name: job[name] for name in REQUEST_FIELDS if job.get(name) not in (None, [], {}, False)
    }
    request["Tags"] = {each["Key"]: each["Value"] for each in request.get("Tags", ())}
    algorithm = dict(request.get("AlgorithmSpecification", {}))
    algorithm["MetricDefinitions"] = {
        each["Name"]: each["Regex"] for each in algorithm.get("MetricDefinitions", ())
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
    """Paths at which they differ; a section or channel that only one of them has is one
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Decisions:
    """What a person decides and no job says; None is left out of the document, which then needs
    it.
    """

    examples: int | None = None
    max_usd: Decimal | None = None
    max_hours: Decimal | None = None
    goal: str = "cheapest"


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedSuite:
    """``document``: of the suite, as its file has it.

    ``differences``: all between the request of its base cell and the job's own. ``missing``: paths
    of the document that a person still has to write. ``left_out``: what the job has and the
    document must not have, with the reason.
    """

    document: dict[str, Any]
    differences: tuple[RequestDifference, ...]
    missing: tuple[str, ...]
    left_out: Mapping[str, str]


def import_job(
    job: Mapping[str, Any], decisions: Decisions, *, drivers: Drivers | None = None
) -> ImportedSuite:
    """``drivers``: of a job of the SDK 3, which no request tells.

    Raises JobNotImportable for a job that no suite can ask for.
    """
    refuse_wrong_shape(job)
    job, left_out = without_secrets(job, REQUEST_FIELDS)
    document = {
        "name": _suite_name(job_name(job)),
        "goal": decisions.goal,
        **_work(job, drivers, left_out),
        # A request equals a job's own where each run has a job of its own.
        "measurement": {"jobs": Jobs.SEPARATE.value},
        **_terms(job),
    }
    given = {
        ("workload", "examples"): decisions.examples,
        ("limits", "max_usd"): decisions.max_usd,
        ("limits", "max_hours"): decisions.max_hours,
    }
    for (section, field), value in given.items():
        if value is not None:
            document[section][field] = float(value) if isinstance(value, Decimal) else value
    missing = tuple(
        f"{section}.{field}" for section, field in given if field not in document[section]
    )
    is_elsewhere = drivers is None or drivers.copied_to is not None
    local = local_path(document["workload"]) if is_elsewhere else None
    if local is not None:
        raise JobNotImportable(f"{job_name(job)}: no path of this machine can be meant: {local}")
    if has_nul(document):
        raise JobNotImportable(
            f"{job_name(job)}: a value has the character U+0000, expected text that a file can hold"
        )
    whole = {
        **document,
        **{section: {**more, **document[section]} for section, more in UNDECIDED.items()},
    }
    try:
        differences = differences_of(job, parse_suite(whole), is_toolkit=drivers is None)
    except TraindynoError as error:
        raise JobNotImportable(
            f"{job_name(job)}: no suite can ask for this job:\n{error}"
        ) from error
    return ImportedSuite(
        document=document, differences=differences, missing=missing, left_out=left_out
    )


def check_description(job: Mapping[str, Any]) -> None:
    """Check a job's description before its channels and its end are read.

    Raises JobNotImportable.
    """
    refuse_wrong_shape(job)
    refuse_secrets(job_name(job), find_secrets(job.get("InputDataConfig", ()), "InputDataConfig"))
    try:
        has_ended(job)
    except (KeyError, UnknownJobStatus) as error:
        raise JobNotImportable(
            f"{job_name(job)}: its status is unknown, expected one such as Completed"
        ) from error


def _work(
    job: Mapping[str, Any], drivers: Drivers | None, left_out: dict[str, str]
) -> dict[str, Any]:
    """The sections ``workload`` and ``training``."""
    if drivers is not None:
        for document, place in (
            (drivers.source_code, "source_code"),
            (drivers.distributed, "distributed"),
        ):
            refuse_excess(job_name(job), place, document)
            refuse_secrets(job_name(job), find_secrets(document, place))
        found = read_driver_program(job, drivers)
    elif toolkit_values(job).get("sagemaker_program") == SHARED_PROGRAM:
        raise JobNotImportable(
            f"{job_name(job)}: it carried several runs of a suite, expected a job of one run"
        )
    elif is_built_in(job):
        return _built_in(job, toolkit_values(job))
    else:
        found = read_program(job)
    left_out |= found.left_out
    given = job.get("Environment", {})
    own = {
        name: value for name, value in given.items() if not name.startswith(OWN_ENVIRONMENT_PREFIX)
    }
    workload: dict[str, Any] = {
        "task": Task.SCRIPT.value,
        "source": found.source,
        "entry_point": found.entry_point,
        **({"hyperparameters": dict(found.arguments)} if found.arguments else {}),
        **_image(job),
        **({"environment": own} if own else {}),
        **_channels(job, left_out),
    }
    plain_training = {name: str(value) for name, value in found.training.items()}
    return {"workload": workload, "training": {**_placement(job), **plain_training}}


def _built_in(job: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """The suite's part of a run of a built-in task, from its hyperparameters."""
    workload = values.get("workload")
    settings = values.get("settings")
    if (
        not isinstance(workload, Mapping)
        or not isinstance(settings, Mapping)
        or workload.get("task") == Task.SCRIPT
    ):
        expected = "workload, with a built-in task, and settings as the lab writes them"
        raise JobNotImportable(
            f"{job_name(job)}: it runs Traindyno's program without its part of a suite, expected "
            f"{expected}"
        )
    defaults = plain_values(Settings(instance=str(settings.get("instance"))))
    changed = {name: value for name, value in settings.items() if value != defaults.get(name)}
    own = {name: value for name, value in workload.items() if value not in (None, {}, [])}
    return {"workload": own, "training": {**changed, **_placement(job)}}


def _placement(job: Mapping[str, Any]) -> dict[str, Any]:
    resources = job.get("ResourceConfig", {})
    if resources.get("InstanceGroups"):
        raise JobNotImportable(
            f"{job_name(job)}: it has instance groups, expected instances of one type"
        )
    preferred = [each["InstanceType"] for each in resources.get("InstancePreferences", ())]
    instance = resources.get("InstanceType") or next(iter(preferred), None)
    if instance is None or find_instance_type(str(instance)) is None:
        close = ", ".join(close_instance_types(str(instance))) or "a training instance type"
        raise JobNotImportable(
            f"{job_name(job)}: its instance type is {instance}, expected {close}"
        )
    return {"instance": instance, "instance_count": resources.get("InstanceCount", 1)}


def _image(job: Mapping[str, Any]) -> dict[str, str]:
    algorithm = job.get("AlgorithmSpecification", {})
    if "TrainingImage" not in algorithm:
        found = algorithm.get("AlgorithmName", "nothing")
        raise JobNotImportable(
            f"{job_name(job)}: its algorithm is {found}, expected a container image"
        )
    is_local = str(_placement(job)["instance"]).startswith("local.")
    return {} if is_local else {"image": algorithm["TrainingImage"]}


def _channels(job: Mapping[str, Any], left_out: dict[str, str]) -> dict[str, Any]:
    sections: dict[str, Any] = {}
    further: dict[str, str] = {}
    default_mode = job.get("AlgorithmSpecification", {}).get(
        "TrainingInputMode", InputMode.FILE.value
    )
    for channel in job.get("InputDataConfig", ()):
        name = channel["ChannelName"]
        if name in SDK_CHANNELS:
            continue
        address = channel_address(channel)
        mode = channel.get("InputMode") or default_mode
        if address is None:
            left_out[f"InputDataConfig.{name}"] = (
                "its files are no prefix in S3, such as a manifest or a file system"
            )
        elif name == TRAIN_CHANNEL:
            modes = {InputMode.FILE.value, InputMode.FAST_FILE.value}
            sections["dataset"] = {
                "path": address,
                **({"input_mode": mode} if mode in modes else {}),
            }
        else:
            further[name] = address
    return sections | ({"channels": further} if further else {})


def channel_address(channel: Mapping[str, Any]) -> str | None:
    """``s3://…`` or a local path, as a suite writes it; None for what no suite names."""
    found = channel["DataSource"].get("S3DataSource")
    if found is None:
        return None
    return str(found["S3Uri"]) if found.get("S3DataType", "S3Prefix") == "S3Prefix" else None


def _terms(job: Mapping[str, Any]) -> dict[str, Any]:
    """Limits, purchase and what SageMaker adds to the job."""
    condition = job.get("StoppingCondition", {})
    longest = condition.get("MaxRuntimeInSeconds", DEFAULT_RUNTIME_SECONDS)
    limits: dict[str, Any] = {"max_job_seconds": longest}
    terms: dict[str, Any] = {"limits": limits}
    waiting = condition.get("MaxPendingTimeInSeconds")
    if job.get("EnableManagedSpotTraining"):
        terms["purchase"] = Purchase.SPOT.value
        waiting = condition.get("MaxWaitTimeInSeconds", longest) - longest
    if waiting is not None:
        limits["max_pending_seconds"] = int(max(waiting, PENDING_SECONDS.least or 0))
    resources = job.get("ResourceConfig", {})
    metrics = job.get("AlgorithmSpecification", {}).get("MetricDefinitions", ())
    options = {
        "volume_size_gb": resources.get("VolumeSizeInGB"),
        "metrics": {each["Name"]: each["Regex"] for each in metrics},
        "debugger_hook": "DebugHookConfig" in job,
    }
    options = {name: value for name, value in options.items() if value}
    return terms | ({"job": options} if options else {})


def _suite_name(text: str) -> str:
    """The job's name without what SDKs add, the time of the request."""
    base = re.sub(r"-\d{4}-?\d\d-?\d\d[-\d]*$", "", text)
    words = re.findall(r"[a-zA-Z0-9]+", base) or ["imported"]
    return "-".join(words)[:NAME_CHARACTERS].strip("-")


def document_json(document: Mapping[str, Any]) -> Any:
    """The document in plain JSON types: no tuples, no enumerations."""
    return json.loads(json.dumps(document))
