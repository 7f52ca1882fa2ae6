"""The script of a job, its arguments and its launcher, as either version of the SageMaker SDK tells them to a job."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from traindyno.core.documents.problems import shown
from traindyno.core.documents.stored import JsonValue
from traindyno.core.errors import TraindynoError
from traindyno.core.instances.instance_types import find_instance_type
from traindyno.core.s3_keys import is_s3_uri
from traindyno.core.suite.arguments import command_arguments
from traindyno.core.suite.checks.job_limits_check import (
    MODEL_PARALLEL_PARAMETERS,
    MPI_OPTIONS,
    SDK_PREFIX,
    SMDDP_OPTIONS,
)
from traindyno.core.suite.checks.secrets_check import secret_kind
from traindyno.core.suite.choices import Compiler, Strategy
from traindyno.sagemaker.launcher import CODE_CHANNEL, ENTRY_POINT, ISOLATED_SOURCE

# The channel of the SDK 3 with its own programs, and what that of its container starts.
DRIVERS_CHANNEL = "sm_drivers"
SDK_CHANNELS = (CODE_CHANNEL, DRIVERS_CHANNEL)
# Launcher flag of the training toolkit → the settings that lead to it. If several are set, the first counts.
LAUNCHED_BY: Mapping[str, Mapping[str, str]] = {
    "sagemaker_pytorch_ddp_enabled": {"strategy": Strategy.DDP},
    "sagemaker_torch_distributed_enabled": {"strategy": Strategy.DDP},
    "sagemaker_distributed_dataparallel_enabled": {"strategy": Strategy.SMDDP},
    "sagemaker_pytorch_xla_multi_worker_enabled": {"strategy": Strategy.DDP, "compiler": Compiler.XLA},
}
MPI_ENABLED = "sagemaker_mpi_enabled"


class JobNotImportable(TraindynoError):
    """No suite can ask for such a job; the message says why, and what a suite could ask for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """``source``: a folder, or an S3 tarball. ``training``: the settings that choose the same launcher.

    ``left_out``: what the job's program has and a suite's can't have, with the reason.
    """

    source: str
    entry_point: str
    arguments: Mapping[str, JsonValue]
    training: Mapping[str, str]
    left_out: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Drivers:
    """What the drivers of the SDK 3 start: ``sourcecode.json`` and ``distributed.json`` of their channel.

    ``copied_to``: the folder to which a person copies the code of a job that ran elsewhere; None: ``source_dir`` is a
    folder of this machine.
    """

    source_code: Mapping[str, Any]
    distributed: Mapping[str, Any]
    copied_to: str | None = None


def read_program(job: Mapping[str, Any]) -> Program:
    """Read the program of a job that the training toolkit starts (SDK 2, this lab). Raises JobNotImportable."""
    values = toolkit_values(job)
    source, program = values.get("sagemaker_submit_directory"), values.get("sagemaker_program")
    if program is None or source is None:
        raise JobNotImportable(f"{job_name(job)}: {_what_it_runs(job)}; expected a job that runs a script")
    if source == ISOLATED_SOURCE:
        source = channel_uri(job, CODE_CHANNEL)
    if not isinstance(source, str) or not is_s3_uri(source):
        raise JobNotImportable(f"{job_name(job)}: its code is {_text(source)}, expected a tarball in S3")
    if not isinstance(program, str):
        raise JobNotImportable(f"{job_name(job)}: its script is {shown(program)}, expected the name of a .py file")
    kept = {SMDDP_OPTIONS} | ({MPI_OPTIONS} if MODEL_PARALLEL_PARAMETERS in values else set())
    arguments = {
        name: value
        for name, value in values.items()
        if not name.startswith(SDK_PREFIX) or (name in kept and value != "")
    }
    return Program(source=source, entry_point=program, arguments=arguments, training=_launched_by(job, values))


def read_driver_program(job: Mapping[str, Any], drivers: Drivers) -> Program:
    """Raises JobNotImportable."""
    source_code, distributed = drivers.source_code, drivers.distributed
    _refuse_other_drivers(job_name(job), source_code, distributed)
    arguments = {key: _suite_value(text) for key, text in driver_arguments(job.get("HyperParameters", {})).items()}
    strategy = Strategy.DDP if distributed else Strategy.SINGLE
    return Program(
        source=drivers.copied_to or source_code["source_dir"],
        entry_point=source_code["entry_script"],
        arguments=arguments,
        training={"strategy": strategy.value},
        left_out=dict(_driver_options(job, source_code, distributed)),
    )


def _refuse_other_drivers(name: str, source_code: Mapping[str, Any], distributed: Mapping[str, Any]) -> None:
    source, script = source_code.get("source_dir"), source_code.get("entry_script")
    if source_code.get("command"):
        raise JobNotImportable(
            f"{name}: source_code.command is a shell command, expected source_code.entry_script: a suite starts a .py"
            " file, by torchrun if distributed is Torchrun()"
        )
    is_script = isinstance(script, str) and script.endswith(".py")
    if not source or not isinstance(source, str) or not is_script:
        found = f"source_dir {_text(source)} and entry_script {_text(script)}"
        raise JobNotImportable(f"{name}: got {found}, expected a source_dir and a .py file in it")
    if "mpi_additional_options" in distributed:
        raise JobNotImportable(f"{name}: distributed is MPI, expected Torchrun or nothing: a suite has no mpirun")
    if source_code.get("args"):
        raise JobNotImportable(f"{name}: source_code.args is set, expected hyperparameters: cells vary those")


def _driver_options(
    job: Mapping[str, Any], source_code: Mapping[str, Any], distributed: Mapping[str, Any]
) -> Iterator[tuple[str, str]]:
    """Options of the drivers that the toolkit does not have."""
    instance = find_instance_type(str(job.get("ResourceConfig", {}).get("InstanceType")))
    devices = instance.devices_per_instance if instance else None
    processes = distributed.get("process_count_per_node")
    if processes is not None and processes != devices:
        yield "distributed.process_count_per_node", f"{processes}; the toolkit starts one for each of {devices} devices"
    requirements = source_code.get("requirements")
    if requirements not in (None, "requirements.txt"):
        yield "source_code.requirements", f"{requirements}; the toolkit installs requirements.txt of the source"


def _text(value: Any) -> str:
    return value if isinstance(value, str) and value else shown(value)


def is_built_in(job: Mapping[str, Any]) -> bool:
    """Whether our own program ran, with its part of a suite as hyperparameters."""
    return toolkit_values(job).get("sagemaker_program") == ENTRY_POINT


def job_name(job: Mapping[str, Any]) -> str:
    """For messages: without what looks like a secret."""
    name = str(job.get("TrainingJobName", "the job"))
    return "the job" if secret_kind(name) else name


def toolkit_values(job: Mapping[str, Any]) -> dict[str, Any]:
    """The job's hyperparameters, decoded as the toolkit decodes them: what is no JSON is text."""
    return {name: _decoded(text) for name, text in job.get("HyperParameters", {}).items()}


def toolkit_arguments(job: Mapping[str, Any]) -> dict[str, str]:
    """What the toolkit passes to the script: ``--lr`` → ``0.1``."""
    own = {name: value for name, value in toolkit_values(job).items() if not name.startswith(SDK_PREFIX)}
    words = command_arguments(own)
    return dict(zip(words[::2], words[1::2], strict=True))


def driver_arguments(hyperparameters: Mapping[str, str]) -> dict[str, str]:
    """What the drivers of the SDK 3 pass to the script, by name without ``--``: JSON written anew, or the text."""
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
        raise JobNotImportable(f"{job_name(job)}: mpirun starts its script, expected torchrun, SMDDP or no launcher")
    found = (settings for flag, settings in LAUNCHED_BY.items() if values.get(flag) is True)
    return next(found, {"strategy": Strategy.SINGLE})


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
        return f"its container starts {' '.join(algorithm['ContainerEntrypoint'])}, and no script is named"
    return f"its image {algorithm.get('TrainingImage', 'unknown')} has its own program"
