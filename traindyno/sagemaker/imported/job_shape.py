"""What an import reads of a job's description has the types that SageMaker documents; anyone may have written it."""

from collections.abc import Iterator, Mapping
from typing import Any

from traindyno.core.documents.extent import excess_of
from traindyno.core.documents.problems import EXPECTED_OF_TYPE, shown
from traindyno.core.errors import Problem

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
    "StoppingCondition": {
        "MaxRuntimeInSeconds": int,
        "MaxPendingTimeInSeconds": int,
        "MaxWaitTimeInSeconds": int,
    },
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
