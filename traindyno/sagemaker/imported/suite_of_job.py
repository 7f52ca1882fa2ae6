"""A CreateTrainingJob request, or DescribeTrainingJob's answer, as the document of a suite with this one cell."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from traindyno.core.errors import SuiteInvalid, TraindynoError
from traindyno.core.instances.instance_types import close_instance_types, find_instance_type
from traindyno.core.jobs.journal_format import PROGRAM as SHARED_PROGRAM
from traindyno.core.suite.checks.job_limits_check import OWN_ENVIRONMENT_PREFIX, TRAIN_CHANNEL
from traindyno.core.suite.checks.secrets_check import find_secrets
from traindyno.core.suite.checks.suite_check import NAME_CHARACTERS, parse_suite
from traindyno.core.suite.choices import InputMode, Jobs, Purchase, Task
from traindyno.core.suite.settings import Settings
from traindyno.core.suite.suite import PENDING_SECONDS
from traindyno.core.suite.suite_file import parse_part, settings_document
from traindyno.sagemaker.imported.differences import REQUEST_FIELDS, RequestDifference, differences_of
from traindyno.sagemaker.imported.job_shape import (
    has_nul,
    local_path,
    refuse_excess,
    refuse_secrets,
    shape_problem,
    without_secrets,
)
from traindyno.sagemaker.imported.program import (
    SDK_CHANNELS,
    Drivers,
    JobNotImportable,
    is_built_in,
    job_name,
    read_driver_program,
    read_program,
    toolkit_values,
)
from traindyno.sagemaker.job_description import UnknownJobStatus, has_ended

# SageMaker's own, for a request without a limit.
DEFAULT_RUNTIME_SECONDS = 86_400
# What no job says; a document without it is not accepted.
UNDECIDED: Mapping[str, Any] = {"workload": {"examples": 1}, "limits": {"max_usd": 1, "max_hours": 1}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Decisions:
    """What a person decides and no job says; None is left out of the document, which then needs it."""

    examples: int | None = None
    max_usd: Decimal | None = None
    max_hours: Decimal | None = None
    goal: str = "cheapest"


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedSuite:
    """``document``: of the suite, as its file has it. ``differences``: all between the request of its base cell and the
    job's own. ``missing``: paths of the document that a person still has to write. ``left_out``: what the job has and
    the document must not have, with the reason.
    """

    document: dict[str, Any]
    differences: tuple[RequestDifference, ...]
    missing: tuple[str, ...]
    left_out: Mapping[str, str]


def import_job(job: Mapping[str, Any], decisions: Decisions, *, drivers: Drivers | None = None) -> ImportedSuite:
    """``drivers``: of a job of the SDK 3, which no request tells. Raises JobNotImportable for a job that no suite can
    ask for.
    """
    _refuse_wrong_shape(job)
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
    missing = tuple(f"{section}.{field}" for section, field in given if field not in document[section])
    is_elsewhere = drivers is None or drivers.copied_to is not None
    local = local_path(document["workload"]) if is_elsewhere else None
    if local is not None:
        raise JobNotImportable(f"{job_name(job)}: no path of this machine can be meant: {local}")
    if has_nul(document):
        raise JobNotImportable(f"{job_name(job)}: a value has the character U+0000, expected text that a file can hold")
    whole = {**document, **{section: {**more, **document[section]} for section, more in UNDECIDED.items()}}
    try:
        suite = parse_suite(whole)
    except SuiteInvalid as error:
        raise JobNotImportable(f"{job_name(job)}: no suite can ask for this job:\n{error}") from error
    try:
        differences = differences_of(job, suite, is_toolkit=drivers is None)
    except TraindynoError as error:
        raise JobNotImportable(f"{job_name(job)}: no suite can ask for this job: {error}") from error
    return ImportedSuite(document=document, differences=differences, missing=missing, left_out=left_out)


def check_description(job: Mapping[str, Any]) -> None:
    """Check a job's description before its channels and its end are read. Raises JobNotImportable."""
    _refuse_wrong_shape(job)
    refuse_secrets(job_name(job), find_secrets(job.get("InputDataConfig", ()), "InputDataConfig"))
    try:
        has_ended(job)
    except (KeyError, UnknownJobStatus) as error:
        raise JobNotImportable(f"{job_name(job)}: its status is unknown, expected one such as Completed") from error


def _refuse_wrong_shape(job: object) -> None:
    problem = shape_problem(job)
    if problem is not None:
        raise JobNotImportable(f"this is no training job's description: {problem}")


def _work(job: Mapping[str, Any], drivers: Drivers | None, left_out: dict[str, str]) -> dict[str, Any]:
    """The sections ``workload`` and ``training``."""
    if drivers is not None:
        for document, place in ((drivers.source_code, "source_code"), (drivers.distributed, "distributed")):
            refuse_excess(job_name(job), place, document)
            refuse_secrets(job_name(job), find_secrets(document, place))
        found = read_driver_program(job, drivers)
    elif toolkit_values(job).get("sagemaker_program") == SHARED_PROGRAM:
        raise JobNotImportable(f"{job_name(job)}: it carried several runs of a suite, expected a job of one run")
    elif is_built_in(job):
        return _built_in(job, toolkit_values(job))
    else:
        found = read_program(job)
    left_out |= found.left_out
    given = job.get("Environment", {})
    own = {name: value for name, value in given.items() if not name.startswith(OWN_ENVIRONMENT_PREFIX)}
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
    workload, settings = values.get("workload"), values.get("settings")
    if not isinstance(workload, Mapping) or not isinstance(settings, Mapping) or workload.get("task") == Task.SCRIPT:
        expected = "workload, with a built-in task, and settings as the lab writes them"
        raise JobNotImportable(
            f"{job_name(job)}: it runs Traindyno's program without its part of a suite, expected {expected}"
        )
    defaults = settings_document(Settings(instance=str(settings.get("instance"))))
    changed = {name: value for name, value in settings.items() if value != defaults.get(name)}
    try:
        parse_part(changed | {"instance": settings.get("instance")}, Settings)
    except SuiteInvalid as error:
        raise JobNotImportable(f"{job_name(job)}: its settings are no settings of this version:\n{error}") from error
    own = {name: value for name, value in workload.items() if value not in (None, {}, [])}
    return {"workload": own, "training": {**changed, **_placement(job)}}


def _placement(job: Mapping[str, Any]) -> dict[str, Any]:
    resources = job.get("ResourceConfig", {})
    if resources.get("InstanceGroups"):
        raise JobNotImportable(f"{job_name(job)}: it has instance groups, expected instances of one type")
    instance = resources.get("InstanceType") or next(iter(_preferred(job)), None)
    if instance is None or find_instance_type(str(instance)) is None:
        close = ", ".join(close_instance_types(str(instance))) or "a training instance type"
        raise JobNotImportable(f"{job_name(job)}: its instance type is {instance}, expected {close}")
    return {"instance": instance, "instance_count": resources.get("InstanceCount", 1)}


def _preferred(job: Mapping[str, Any]) -> Mapping[str, str | None]:
    """Instance types of its InstancePreferences → training plan; the suite measures the first."""
    preferences = job.get("ResourceConfig", {}).get("InstancePreferences", ())
    return {each["InstanceType"]: next(iter(each.get("TrainingPlanArns", ())), None) for each in preferences}


def _image(job: Mapping[str, Any]) -> dict[str, str]:
    algorithm = job.get("AlgorithmSpecification", {})
    if "TrainingImage" not in algorithm:
        found = algorithm.get("AlgorithmName", "nothing")
        raise JobNotImportable(f"{job_name(job)}: its algorithm is {found}, expected a container image")
    is_local = str(_placement(job)["instance"]).startswith("local.")
    return {} if is_local else {"image": algorithm["TrainingImage"]}


def _channels(job: Mapping[str, Any], left_out: dict[str, str]) -> dict[str, Any]:
    sections: dict[str, Any] = {}
    further: dict[str, str] = {}
    default_mode = job.get("AlgorithmSpecification", {}).get("TrainingInputMode", InputMode.FILE.value)
    for channel in job.get("InputDataConfig", ()):
        name = channel["ChannelName"]
        if name in SDK_CHANNELS:
            continue
        address = channel_address(channel)
        mode = channel.get("InputMode") or default_mode
        if address is None:
            left_out[f"InputDataConfig.{name}"] = "its files are no prefix in S3 and no file system, such as a manifest"
        elif name == TRAIN_CHANNEL and address.startswith(("fsx:", "efs:")) is False:
            modes = {InputMode.FILE.value, InputMode.FAST_FILE.value}
            sections["dataset"] = {"path": address, **({"input_mode": mode} if mode in modes else {})}
        else:
            further[name] = address
    return sections | ({"channels": further} if further else {})


def channel_address(channel: Mapping[str, Any]) -> str | None:
    """``s3://…``, ``fsx://…``, ``efs://…`` or a local path, as a suite writes it; None for what no suite names."""
    source = channel["DataSource"]
    if "FileSystemDataSource" in source:
        found = source["FileSystemDataSource"]
        scheme = "efs" if found["FileSystemType"] == "EFS" else "fsx"
        return f"{scheme}://{found['FileSystemId']}{found['DirectoryPath']}"
    found = source.get("S3DataSource")
    if found is None:
        return None
    return str(found["S3Uri"]) if found.get("S3DataType", "S3Prefix") == "S3Prefix" else None


def _terms(job: Mapping[str, Any]) -> dict[str, Any]:
    """Limits, purchase, reserved capacity and what SageMaker adds to the job."""
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
    plans = {resources.get("InstanceType"): resources.get("TrainingPlanArn"), **_preferred(job)}
    if known := {name: plan for name, plan in plans.items() if name and plan}:
        terms["training_plans"] = known
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
