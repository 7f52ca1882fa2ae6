"""What an import reads of a job's description has the types that SageMaker documents; anyone may have written it."""

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

from traindyno.core.documents.extent import excess_of
from traindyno.core.documents.problems import EXPECTED_OF_TYPE, shown
from traindyno.core.errors import Problem
from traindyno.core.suite.checks.job_limits_check import SDK_PREFIX
from traindyno.core.suite.checks.secrets_check import ADVICE, find_secrets
from traindyno.core.suite.data_formats import COMPRESSIONS, FORMATS, UNREADABLE
from traindyno.core.suite.file_systems import CHANNELS, is_remote, workload_paths
from traindyno.sagemaker.imported.program import JobNotImportable, is_built_in, job_name, toolkit_values

HUB_NAME = re.compile(r"[A-Za-z0-9][\w.\-]*(/[A-Za-z0-9][\w.\-]*)?")
FILE_SUFFIXES = {*FORMATS, *COMPRESSIONS, *UNREADABLE, ".txt"}


def local_path(workload: Mapping[str, Any]) -> str | None:
    """The first path that may be one of this machine, with what is accepted; None if there is none."""
    for place, path in workload_paths(workload):
        takes_hub_name = not place.startswith(CHANNELS)
        is_hub_name = HUB_NAME.fullmatch(path) is not None and PurePosixPath(path).suffix not in FILE_SUFFIXES
        if not is_remote(path) and not (takes_hub_name and is_hub_name):
            hub = ", or the name of a model or dataset of the Hub" if takes_hub_name else ""
            return f"{place}: got {shown(path)}, expected s3://…, fsx://… or efs://…{hub}"
    return None


# Their entries have names, and a job can be asked for without one of them.
NAMED = ("Environment", "HyperParameters", "Tags")


def without_secrets(job: Mapping[str, Any], fields: tuple[str, ...]) -> tuple[dict[str, Any], dict[str, str]]:
    """The job, and what it leaves out: path → reason, never a value.

    Raises JobNotImportable for what looks like a secret in another of ``fields``, or in what the training toolkit
    and our own program read: without it the job would be another.
    """
    name = job_name(job)
    refuse_secrets(name, find_secrets({each: job[each] for each in fields if each in job and each not in NAMED}))
    entries: dict[str, Mapping[str, Any]] = {
        "Environment": job.get("Environment", {}),
        "HyperParameters": toolkit_values(job),
        "Tags": {tag["Key"]: tag["Value"] for tag in job.get("Tags", ())},
    }
    refuse_excess(name, "HyperParameters", entries["HyperParameters"])
    # What is left out is listed by its name.
    refuse_secrets(name, find_secrets({section: list(given) for section, given in entries.items()}))
    found: dict[str, str] = {}
    for section, given in entries.items():
        for each, value in given.items():
            kind = next((kind for _, kind in find_secrets(value, name=each)), None)  # it is one, or has one inside
            if kind is not None:
                found[f"{section}.{each}"] = kind
    needed = "HyperParameters." if is_built_in(job) else f"HyperParameters.{SDK_PREFIX}"
    refuse_secrets(name, ((path, kind) for path, kind in found.items() if path.startswith(needed)))
    clean = dict(job)
    for section in ("Environment", "HyperParameters"):
        given = job.get(section, {})
        clean[section] = {each: value for each, value in given.items() if f"{section}.{each}" not in found}
    clean["Tags"] = [tag for tag in job.get("Tags", ()) if f"Tags.{tag['Key']}" not in found]
    return clean, {path: f"this looks like {kind}; {ADVICE}" for path, kind in found.items()}


def refuse_secrets(name: str, found: Iterable[tuple[str, str]]) -> None:
    for path, kind in found:
        raise JobNotImportable(f"{name}: {path}: this looks like {kind} (not repeated here), expected none; {ADVICE}")


def refuse_excess(name: str, path: str, document: object) -> None:
    excess = excess_of(document)
    if excess is not None:
        raise JobNotImportable(f"{name}: {path}: {excess}")


ANY_NAME = "*"
# Type → what is expected; a name with "!" is required. Fields that no import reads are not listed.
SHAPE: Mapping[str, Any] = {
    "TrainingJobName": str,
    "TrainingJobStatus": str,
    "BillableTimeInSeconds": int,
    "TrainingTimeInSeconds": int,
    "AlgorithmSpecification": {
        "TrainingImage": str,
        "AlgorithmName": str,
        "TrainingInputMode": str,
        "ContainerEntrypoint": [str],
        "MetricDefinitions": [{"Name!": str, "Regex!": str}],
    },
    "HyperParameters": {ANY_NAME: str},
    "Environment": {ANY_NAME: str},
    "Tags": [{"Key!": str, "Value!": str}],
    "InputDataConfig": [
        {
            "ChannelName!": str,
            "InputMode": str,
            "DataSource!": {
                "S3DataSource": {"S3Uri!": str, "S3DataType": str},
                "FileSystemDataSource": {"FileSystemId!": str, "FileSystemType!": str, "DirectoryPath!": str},
            },
        }
    ],
    "ResourceConfig": {
        "InstanceType": str,
        "InstanceCount": int,
        "VolumeSizeInGB": int,
        "KeepAlivePeriodInSeconds": int,
        "TrainingPlanArn": str,
        "SelectedInstanceType": str,
        "SelectedInstanceCount": int,
        "InstanceGroups": [{}],
        "InstancePreferences": [{"InstanceType!": str, "TrainingPlanArns": [str]}],
    },
    "StoppingCondition": {"MaxRuntimeInSeconds": int, "MaxPendingTimeInSeconds": int, "MaxWaitTimeInSeconds": int},
    "CheckpointConfig": {"S3Uri": str},
    "EnableManagedSpotTraining": bool,
}


def shape_problem(job: object) -> Problem | None:
    """The first place at which the description is none of a training job; None if there is none."""
    return excess_of(job) or next(_problems("", job, SHAPE), None)


def _problems(path: str, value: object, shape: Any) -> Iterator[Problem]:
    match shape:
        case Mapping() if isinstance(value, Mapping):
            for name, inner in shape.items():
                yield from _field_problems(path, value, name, inner)
        case [inner] if isinstance(value, list | tuple):
            for index, each in enumerate(value):
                yield from _problems(f"{path}[{index}]", each, inner)
        case Mapping():
            yield Problem(path=path, message=f"got {shown(value)}, expected names with their values")
        case list():
            yield Problem(path=path, message=f"got {shown(value)}, expected a list")
        case _ if not isinstance(value, shape) or (shape is int and isinstance(value, bool)):
            yield Problem(path=path, message=f"got {type(value).__name__}, expected {EXPECTED_OF_TYPE[shape]}")


def _field_problems(path: str, value: Mapping[str, Any], field: str, inner: Any) -> Iterator[Problem]:
    name = field.removesuffix("!")
    found = list(value) if name == ANY_NAME else [name] if name in value else []
    if not found and name != field:
        yield Problem(path=_join(path, name), message="got nothing, expected a value")
    for each in found:
        yield from _problems(_join(path, str(each)), value[each], inner)


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def has_nul(value: object) -> bool:
    """Whether a text has the character that no variable, no argument and no YAML file can have."""
    if isinstance(value, str):
        return "\0" in value
    if isinstance(value, Mapping):
        value = [*value, *value.values()]
    return isinstance(value, list | tuple) and any(map(has_nul, value))
