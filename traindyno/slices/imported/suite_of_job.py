"""A CreateTrainingJob request, or DescribeTrainingJob's answer, as the document of a suite with
this one cell.

Each difference between the job's request and the request of the suite's base cell has its reason.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from traindyno.core.documents.plain import plain_values
from traindyno.core.errors import TraindynoError
from traindyno.core.instances.instance_types import close_instance_types, find_instance_type
from traindyno.core.jobs.journal_format import PROGRAM as SHARED_PROGRAM
from traindyno.core.run.settings import Settings
from traindyno.core.suite.checks.job_limits_check import OWN_ENVIRONMENT_PREFIX, TRAIN_CHANNEL
from traindyno.core.suite.checks.secrets_check import find_secrets
from traindyno.core.suite.checks.suite_check import NAME_CHARACTERS, parse_suite
from traindyno.core.suite.choices import InputMode, Jobs, Purchase, Task
from traindyno.core.suite.suite import PENDING_SECONDS
from traindyno.sagemaker.job_description import UnknownJobStatus, has_ended
from traindyno.slices.imported.job import (
    SDK_CHANNELS,
    Drivers,
    JobNotImportable,
    has_nul,
    is_built_in,
    job_name,
    local_path,
    read_driver_program,
    read_program,
    refuse_excess,
    refuse_secrets,
    refuse_wrong_shape,
    toolkit_values,
    without_secrets,
)
from traindyno.slices.imported.request_differences import (
    REQUEST_FIELDS,
    RequestDifference,
    differences_of,
)

# SageMaker's own, for a request without a limit.
DEFAULT_RUNTIME_SECONDS = 86_400
# What no job says; a document without it is not accepted.
UNDECIDED: Mapping[str, Any] = {
    "workload": {"examples": 1},
    "limits": {"max_usd": 1, "max_hours": 1},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Decisions:
    """Decisions of a person that no job states; None is left out of the document, which then needs
    it.
    """

    examples: int | None = None
    max_usd: Decimal | None = None
    max_hours: Decimal | None = None
    goal: str = "cheapest"


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedSuite:
    """A suite made of a training job.

    ``document`` is the suite as its file has it. ``differences`` has each difference between the
    request of its base cell and the job's own. ``missing`` has the paths of the document that a
    person still has to write. ``left_out`` has what the job has and the document must not have,
    with the reason.
    """

    document: dict[str, Any]
    differences: tuple[RequestDifference, ...]
    missing: tuple[str, ...]
    left_out: Mapping[str, str]


def import_job(
    job: Mapping[str, Any], decisions: Decisions, *, drivers: Drivers | None = None
) -> ImportedSuite:
    """Make a suite of a job's request or description.

    ``drivers`` are the drivers of a job of the SDK 3, which no request tells.

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
        program = read_driver_program(job, drivers)
    elif toolkit_values(job).get("sagemaker_program") == SHARED_PROGRAM:
        raise JobNotImportable(
            f"{job_name(job)}: it carried several runs of a suite, expected a job of one run"
        )
    elif is_built_in(job):
        return _built_in(job, toolkit_values(job))
    else:
        program = read_program(job)
    left_out |= program.left_out
    given = job.get("Environment", {})
    own = {
        name: value for name, value in given.items() if not name.startswith(OWN_ENVIRONMENT_PREFIX)
    }
    workload: dict[str, Any] = {
        "task": Task.SCRIPT.value,
        "source": program.source,
        "entry_point": program.entry_point,
        **({"hyperparameters": dict(program.arguments)} if program.arguments else {}),
        **_image(job),
        **({"environment": own} if own else {}),
        **_channels(job, left_out),
    }
    plain_training = {name: str(value) for name, value in program.training.items()}
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
    preferred = [choice["InstanceType"] for choice in resources.get("InstancePreferences", ())]
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
        algorithm_name = algorithm.get("AlgorithmName", "nothing")
        raise JobNotImportable(
            f"{job_name(job)}: its algorithm is {algorithm_name}, expected a container image"
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
    """Address of a channel as a suite writes it, ``s3://…`` or a local path; None if no suite can
    name it.
    """
    source = channel["DataSource"].get("S3DataSource")
    if source is None:
        return None
    return str(source["S3Uri"]) if source.get("S3DataType", "S3Prefix") == "S3Prefix" else None


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
        "metrics": {metric["Name"]: metric["Regex"] for metric in metrics},
        "debugger_hook": "DebugHookConfig" in job,
    }
    options = {name: value for name, value in options.items() if value}
    return terms | ({"job": options} if options else {})


def _suite_name(text: str) -> str:
    """The job's name without the time of the request, which SDKs add."""
    base = re.sub(r"-\d{4}-?\d\d-?\d\d[-\d]*$", "", text)
    words = re.findall(r"[a-zA-Z0-9]+", base) or ["imported"]
    return "-".join(words)[:NAME_CHARACTERS].strip("-")


def document_json(document: Mapping[str, Any]) -> Any:
    """The document in plain JSON types: no tuples, no enumerations."""
    return json.loads(json.dumps(document))
