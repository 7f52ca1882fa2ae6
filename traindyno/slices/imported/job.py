"""A training job's description, which anyone may have written: its types, its secrets, its script
and its launcher.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from traindyno.core.documents.extent import excess_of
from traindyno.core.documents.problems import EXPECTED_OF_TYPE, join_path, shown
from traindyno.core.documents.stored import JsonValue
from traindyno.core.errors import Problem, TraindynoError
from traindyno.core.instances.instance_types import find_instance_type
from traindyno.core.run.data_formats import is_hub_name
from traindyno.core.run.workload import CHANNELS, workload_paths
from traindyno.core.s3_keys import is_s3_uri
from traindyno.core.suite.arguments import command_arguments
from traindyno.core.suite.checks.job_limits_check import (
    MODEL_PARALLEL_PARAMETERS,
    MPI_OPTIONS,
    SDK_PREFIX,
    SMDDP_OPTIONS,
)
from traindyno.core.suite.checks.secrets_check import ADVICE, find_secrets, secret_kind
from traindyno.core.suite.choices import Compiler, Strategy
from traindyno.sagemaker.launcher import CODE_CHANNEL, ENTRY_POINT, ISOLATED_SOURCE

# The channel with the programs of the SDK 3, whose container starts them.
DRIVERS_CHANNEL = "sm_drivers"
SDK_CHANNELS = (CODE_CHANNEL, DRIVERS_CHANNEL)
# Launcher flag of the training toolkit → the settings that lead to it. If several are set, the
# first counts.
LAUNCHED_BY: Mapping[str, Mapping[str, str]] = {
    "sagemaker_pytorch_ddp_enabled": {"strategy": Strategy.DDP},
    "sagemaker_torch_distributed_enabled": {"strategy": Strategy.DDP},
    "sagemaker_distributed_dataparallel_enabled": {"strategy": Strategy.SMDDP},
    "sagemaker_pytorch_xla_multi_worker_enabled": {
        "strategy": Strategy.DDP,
        "compiler": Compiler.XLA,
    },
}
MPI_ENABLED = "sagemaker_mpi_enabled"
# Their entries have names, and a job can be asked for without one of them.
NAMED = ("Environment", "HyperParameters", "Tags")
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
                "FileSystemDataSource": {
                    "FileSystemId!": str,
                    "FileSystemType!": str,
                    "DirectoryPath!": str,
                },
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


class JobNotImportable(TraindynoError):
    """No suite can ask for such a job; the message says why, and what a suite could ask for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """The program that a job starts.

    ``source`` is a folder, or an S3 tarball. ``training`` has the settings that choose the same
    launcher. ``left_out`` has what the job's program has and a suite's can't have, with the reason.
    """

    source: str
    entry_point: str
    arguments: Mapping[str, JsonValue]
    training: Mapping[str, str]
    left_out: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Drivers:
    """What the drivers of the SDK 3 start: ``sourcecode.json`` and ``distributed.json`` of their
    channel.

    ``copied_to`` is the folder to which a person copies the code of a job that ran elsewhere; if it
    is None, ``source_dir`` is a folder of this machine.
    """

    source_code: Mapping[str, Any]
    distributed: Mapping[str, Any]
    copied_to: str | None = None


def read_program(job: Mapping[str, Any]) -> Program:
    """Read the program of a job that the training toolkit starts (SDK 2, this lab).

    Raises JobNotImportable.
    """
    values = toolkit_values(job)
    source = values.get("sagemaker_submit_directory")
    program = values.get("sagemaker_program")
    if program is None or source is None:
        raise JobNotImportable(
            f"{job_name(job)}: {_what_it_runs(job)}; expected a job that runs a script"
        )
    if source == ISOLATED_SOURCE:
        source = channel_uri(job, CODE_CHANNEL)
    if not isinstance(source, str) or not is_s3_uri(source):
        raise JobNotImportable(
            f"{job_name(job)}: its code is {_text(source)}, expected a tarball in S3"
        )
    if not isinstance(program, str):
        raise JobNotImportable(
            f"{job_name(job)}: its script is {shown(program)}, expected the name of a .py file"
        )
    kept = {SMDDP_OPTIONS} | ({MPI_OPTIONS} if MODEL_PARALLEL_PARAMETERS in values else set())
    arguments = {
        name: value
        for name, value in values.items()
        if not name.startswith(SDK_PREFIX) or (name in kept and value != "")
    }
    return Program(
        source=source, entry_point=program, arguments=arguments, training=_launched_by(job, values)
    )


def read_driver_program(job: Mapping[str, Any], drivers: Drivers) -> Program:
    """Read the program of a job that the drivers of the SDK 3 start. Raises JobNotImportable."""
    source_code = drivers.source_code
    distributed = drivers.distributed
    _refuse_other_drivers(job_name(job), source_code, distributed)
    arguments = {
        key: _suite_value(text)
        for key, text in driver_arguments(job.get("HyperParameters", {})).items()
    }
    strategy = Strategy.DDP if distributed else Strategy.SINGLE
    return Program(
        source=drivers.copied_to or source_code["source_dir"],
        entry_point=source_code["entry_script"],
        arguments=arguments,
        training={"strategy": strategy.value},
        left_out=dict(_driver_options(job, source_code, distributed)),
    )


def _refuse_other_drivers(
    name: str, source_code: Mapping[str, Any], distributed: Mapping[str, Any]
) -> None:
    source = source_code.get("source_dir")
    script = source_code.get("entry_script")
    if source_code.get("command"):
        raise JobNotImportable(
            f"{name}: source_code.command is a shell command, expected source_code.entry_script: a "
            "suite starts a .py file, by torchrun if distributed is Torchrun()"
        )
    is_script = isinstance(script, str) and script.endswith(".py")
    if not source or not isinstance(source, str) or not is_script:
        named = f"source_dir {_text(source)} and entry_script {_text(script)}"
        raise JobNotImportable(f"{name}: got {named}, expected a source_dir and a .py file in it")
    if "mpi_additional_options" in distributed:
        raise JobNotImportable(
            f"{name}: distributed is MPI, expected Torchrun or nothing: a suite has no mpirun"
        )
    if source_code.get("args"):
        raise JobNotImportable(
            f"{name}: source_code.args is set, expected hyperparameters, which cells vary"
        )


def _driver_options(
    job: Mapping[str, Any], source_code: Mapping[str, Any], distributed: Mapping[str, Any]
) -> Iterator[tuple[str, str]]:
    """Options of the drivers that the toolkit does not have."""
    instance = find_instance_type(str(job.get("ResourceConfig", {}).get("InstanceType")))
    devices = instance.devices_per_instance if instance else None
    processes = distributed.get("process_count_per_node")
    if processes is not None and processes != devices:
        yield (
            "distributed.process_count_per_node",
            f"{processes}; the toolkit starts one for each of {devices} devices",
        )
    requirements = source_code.get("requirements")
    if requirements not in (None, "requirements.txt"):
        yield (
            "source_code.requirements",
            f"{requirements}; the toolkit installs requirements.txt of the source",
        )


def _text(value: Any) -> str:
    return value if isinstance(value, str) and value else shown(value)


def is_built_in(job: Mapping[str, Any]) -> bool:
    """Whether our own program ran, with its part of a suite as hyperparameters."""
    return toolkit_values(job).get("sagemaker_program") == ENTRY_POINT


def job_name(job: Mapping[str, Any]) -> str:
    """The job's name for messages, unless it looks like a secret."""
    name = str(job.get("TrainingJobName", "the job"))
    return "the job" if secret_kind(name) else name


def toolkit_values(job: Mapping[str, Any]) -> dict[str, Any]:
    """The job's hyperparameters as the toolkit decodes them: a value that is no JSON is text."""
    return {name: _decoded(text) for name, text in job.get("HyperParameters", {}).items()}


def toolkit_arguments(job: Mapping[str, Any]) -> dict[str, str]:
    """Arguments that the toolkit passes to the script: ``--lr`` → ``0.1``."""
    own = {
        name: value
        for name, value in toolkit_values(job).items()
        if not name.startswith(SDK_PREFIX)
    }
    words = command_arguments(own)
    return dict(zip(words[::2], words[1::2], strict=True))


def driver_arguments(hyperparameters: Mapping[str, str]) -> dict[str, str]:
    """Arguments that the drivers of the SDK 3 pass to the script, by name without ``--``: JSON
    written anew, or the text.
    """
    return {name: driver_text(_decoded(text)) for name, text in hyperparameters.items()}


def driver_text(value: Any) -> str:
    """A hyperparameter as the SDK 3 writes it: text has no quotes."""
    return value if isinstance(value, str) else json.dumps(value)


def _suite_value(argument: str) -> JsonValue:
    """The number that the toolkit would write as this argument; else the text itself."""
    value = _decoded(argument)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return value if is_number and str(value) == argument else argument


def _decoded(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _launched_by(job: Mapping[str, Any], values: Mapping[str, Any]) -> Mapping[str, str]:
    if MODEL_PARALLEL_PARAMETERS in values:
        return {"strategy": Strategy.DDP}
    if values.get(MPI_ENABLED):
        raise JobNotImportable(
            f"{job_name(job)}: mpirun starts its script, expected torchrun, SMDDP or no launcher"
        )
    launchers = (settings for flag, settings in LAUNCHED_BY.items() if values.get(flag) is True)
    return next(launchers, {"strategy": Strategy.SINGLE})


def channel_uri(job: Mapping[str, Any], name: str) -> str | None:
    """The S3 URI of one of the job's channels."""
    channels = {channel["ChannelName"]: channel for channel in job.get("InputDataConfig", ())}
    uri = channels.get(name, {}).get("DataSource", {}).get("S3DataSource", {}).get("S3Uri")
    return None if uri is None else str(uri)


def _what_it_runs(job: Mapping[str, Any]) -> str:
    algorithm = job.get("AlgorithmSpecification", {})
    if algorithm.get("AlgorithmName"):
        return f"it runs the algorithm {algorithm['AlgorithmName']}"
    if algorithm.get("ContainerEntrypoint"):
        return (
            f"its container starts {' '.join(algorithm['ContainerEntrypoint'])}, and no script is "
            "named"
        )
    return f"its image {algorithm.get('TrainingImage', 'unknown')} has its own program"


def local_path(workload: Mapping[str, Any]) -> str | None:
    """The first path that may be one of this machine, with what is accepted, or None."""
    for place, path in workload_paths(workload):
        takes_hub_name = not place.startswith(CHANNELS)
        if not is_s3_uri(path) and not (takes_hub_name and is_hub_name(path)):
            hub = ", or the name of a model or dataset of the Hub" if takes_hub_name else ""
            return f"{place}: got {shown(path)}, expected s3://…{hub}"
    return None


def without_secrets(
    job: Mapping[str, Any], fields: tuple[str, ...]
) -> tuple[dict[str, Any], dict[str, str]]:
    """The job without secrets, and the paths of those with the reason, never with a value.

    Raises JobNotImportable if another one of ``fields``, or what the training toolkit and our own
    program read, looks like a secret: without it the job would be another one.
    """
    name = job_name(job)
    refuse_secrets(
        name,
        find_secrets({part: job[part] for part in fields if part in job and part not in NAMED}),
    )
    entries: dict[str, Mapping[str, Any]] = {
        "Environment": job.get("Environment", {}),
        "HyperParameters": toolkit_values(job),
        "Tags": {tag["Key"]: tag["Value"] for tag in job.get("Tags", ())},
    }
    refuse_excess(name, "HyperParameters", entries["HyperParameters"])
    # What is left out is listed by its name.
    refuse_secrets(name, find_secrets({section: list(given) for section, given in entries.items()}))
    kinds: dict[str, str] = {}
    for section, given in entries.items():
        for key, value in given.items():
            kind = next(
                (kind for _, kind in find_secrets(value, name=key)), None
            )  # it is one, or has one inside
            if kind is not None:
                kinds[f"{section}.{key}"] = kind
    needed = "HyperParameters." if is_built_in(job) else f"HyperParameters.{SDK_PREFIX}"
    refuse_secrets(name, ((path, kind) for path, kind in kinds.items() if path.startswith(needed)))
    clean = dict(job)
    for section in ("Environment", "HyperParameters"):
        given = job.get(section, {})
        clean[section] = {
            key: value for key, value in given.items() if f"{section}.{key}" not in kinds
        }
    clean["Tags"] = [tag for tag in job.get("Tags", ()) if f"Tags.{tag['Key']}" not in kinds]
    return clean, {path: f"this looks like {kind}; {ADVICE}" for path, kind in kinds.items()}


def refuse_secrets(name: str, secrets: Iterable[tuple[str, str]]) -> None:
    for path, kind in secrets:
        raise JobNotImportable(
            f"{name}: {path}: this looks like {kind} (not repeated here), expected none; {ADVICE}"
        )


def refuse_excess(name: str, path: str, document: object) -> None:
    excess = excess_of(document)
    if excess is not None:
        raise JobNotImportable(f"{name}: {path}: {excess}")


def refuse_wrong_shape(job: object) -> None:
    """Check that the description is of a training job.

    Raises JobNotImportable for the first place at which it isn't.
    """
    problem = excess_of(job) or next(_problems("", job, SHAPE), None)
    if problem is not None:
        raise JobNotImportable(f"this is no training job's description: {problem}")


def _problems(path: str, value: object, shape: Any) -> Iterator[Problem]:
    match shape:
        case Mapping() if isinstance(value, Mapping):
            for name, inner in shape.items():
                yield from _field_problems(path, value, name, inner)
        case [inner] if isinstance(value, list | tuple):
            for index, element in enumerate(value):
                yield from _problems(f"{path}[{index}]", element, inner)
        case Mapping():
            yield Problem(
                path=path, message=f"got {shown(value)}, expected names with their values"
            )
        case list():
            yield Problem(path=path, message=f"got {shown(value)}, expected a list")
        case _ if not isinstance(value, shape) or (shape is int and isinstance(value, bool)):
            yield Problem(
                path=path, message=f"got {type(value).__name__}, expected {EXPECTED_OF_TYPE[shape]}"
            )


def _field_problems(
    path: str, value: Mapping[str, Any], field: str, inner: Any
) -> Iterator[Problem]:
    name = field.removesuffix("!")
    keys = list(value) if name == ANY_NAME else [name] if name in value else []
    if not keys and name != field:
        yield Problem(path=join_path(path, name), message="got nothing, expected a value")
    for key in keys:
        yield from _problems(join_path(path, str(key)), value[key], inner)


def has_nul(value: object) -> bool:
    """Whether a text has the character that no variable, no argument and no YAML file can have."""
    if isinstance(value, str):
        return "\0" in value
    if isinstance(value, Mapping):
        value = [*value, *value.values()]
    return isinstance(value, list | tuple) and any(map(has_nul, value))
