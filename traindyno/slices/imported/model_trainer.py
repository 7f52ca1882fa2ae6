"""A ModelTrainer of the SageMaker SDK 3 as the request that it would send, read from its
attributes.
"""

import json
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any

from traindyno.slices.imported.job import (
    SDK_CHANNELS,
    Drivers,
    JobNotImportable,
    driver_text,
    job_name,
)
from traindyno.slices.imported.suite_of_job import Decisions, ImportedSuite, import_job

# The SDK's own defaults, of the last versions that were compared.
DEFAULT_COMPUTE: Mapping[str, Any] = {
    "InstanceType": "ml.m5.xlarge",
    "InstanceCount": 1,
    "VolumeSizeInGB": 30,
}
DEFAULT_RUNTIME_SECONDS = 3600
DRIVERS_SCRIPT = "/opt/ml/input/data/sm_drivers/sm_train.sh"
# Attribute of the trainer → field of the request. The private ones are set by methods such as
# with_metric_definitions.
SECTIONS = {
    "output_data_config": "OutputDataConfig",
    "checkpoint_config": "CheckpointConfig",
    "tags": "Tags",
    "_retry_strategy": "RetryStrategy",
    "_infra_check_config": "InfraCheckConfig",
    "_remote_debug_config": "RemoteDebugConfig",
    "_tensorboard_output_config": "TensorBoardOutputConfig",
    "_session_chaining_config": "SessionChainingConfig",
}
DRIVERS_COMMAND = f"chmod +x {DRIVERS_SCRIPT} && {DRIVERS_SCRIPT}"
# Fields of a trainer's compute that are no part of ResourceConfig.
NOT_RESOURCES = ("EnableManagedSpotTraining", "SelectedInstanceType", "SelectedInstanceCount")


def from_model_trainer(
    trainer: Any, decisions: Decisions | None = None, *, input_data_config: Iterable[Any] = ()
) -> ImportedSuite:
    """The suite whose base cell is the job of ``trainer.train(input_data_config=…)``.

    Nothing is sent, and the SDK isn't imported: the trainer's attributes are read. Raises
    JobNotImportable.
    """
    job = request_of(trainer, input_data_config=input_data_config)
    source_code = getattr(trainer, "source_code", None)
    if source_code is None:
        raise JobNotImportable(
            f"{job_name(job)}: the trainer has no source_code, expected a script in a source_dir"
        )
    drivers = Drivers(source_code=_fields(source_code), distributed=_distributed(trainer))
    return import_job(_with_drivers(job), decisions or Decisions(), drivers=drivers)


def _with_drivers(job: Mapping[str, Any]) -> dict[str, Any]:
    """The job with what the SDK adds if it has source code; where the SDK will upload that is not
    known yet.
    """
    algorithm = {
        "ContainerEntrypoint": ["/bin/bash"],
        "ContainerArguments": ["-c", DRIVERS_COMMAND],
    }
    source = {"S3DataSource": {"S3Uri": "where the SDK uploads it"}}
    staged = [{"ChannelName": name, "DataSource": source} for name in SDK_CHANNELS]
    return {
        **job,
        "AlgorithmSpecification": {**job["AlgorithmSpecification"], **algorithm},
        "InputDataConfig": [*job.get("InputDataConfig", ()), *staged],
    }


def request_of(trainer: Any, *, input_data_config: Iterable[Any] = ()) -> dict[str, Any]:
    """Fields of the CreateTrainingJob request, without the channels of the SDK's own code and
    drivers.
    """
    compute = _plain(getattr(trainer, "compute", None)) or dict(DEFAULT_COMPUTE)
    networking = _plain(getattr(trainer, "networking", None)) or {}
    vpc = {
        name: networking[name] for name in ("SecurityGroupIds", "Subnets") if networking.get(name)
    }
    algorithm = {
        "TrainingInputMode": _plain(getattr(trainer, "training_input_mode", None)),
        "TrainingImage": _plain(getattr(trainer, "training_image", None)),
        "TrainingImageConfig": _plain(getattr(trainer, "training_image_config", None)),
        "AlgorithmName": _plain(getattr(trainer, "algorithm_name", None)),
        "MetricDefinitions": _plain(getattr(trainer, "_metric_definitions", None)),
    }
    channels = (*(getattr(trainer, "input_data_config", None) or ()), *input_data_config)
    request = {
        "TrainingJobName": getattr(trainer, "base_job_name", None) or "model-trainer",
        "RoleArn": _plain(getattr(trainer, "role", None)),
        "AlgorithmSpecification": {
            name: value for name, value in algorithm.items() if value is not None
        },
        "HyperParameters": _hyperparameters(trainer),
        # Channels of the call replace the trainer's channels of the same name.
        "InputDataConfig": list(
            {channel.channel_name: _channel(channel) for channel in channels}.values()
        ),
        "ResourceConfig": {
            name: value for name, value in compute.items() if name not in NOT_RESOURCES
        },
        "StoppingCondition": {
            "MaxRuntimeInSeconds": DEFAULT_RUNTIME_SECONDS,
            **(_plain(getattr(trainer, "stopping_condition", None)) or {}),
        },
        "Environment": dict(getattr(trainer, "environment", None) or {}),
        "EnableManagedSpotTraining": compute.get("EnableManagedSpotTraining"),
        "EnableNetworkIsolation": networking.get("EnableNetworkIsolation"),
        "EnableInterContainerTrafficEncryption": networking.get(
            "EnableInterContainerTrafficEncryption"
        ),
        "VpcConfig": vpc,
        **{field: _plain(getattr(trainer, name, None)) for name, field in SECTIONS.items()},
    }
    return {name: value for name, value in request.items() if value not in (None, [], {})}


def _hyperparameters(trainer: Any) -> dict[str, str]:
    given = getattr(trainer, "hyperparameters", None) or {}
    if not isinstance(given, Mapping):
        raise JobNotImportable(
            f"hyperparameters are {type(given).__name__}, expected names with their values"
        )
    texts = {str(name): driver_text(value) for name, value in given.items()}
    parallel = getattr(getattr(trainer, "distributed", None), "smp", None)
    return texts | ({} if parallel is None else {"mp_parameters": json.dumps(_fields(parallel))})


def _distributed(trainer: Any) -> dict[str, Any]:
    """The launcher as the SDK writes it to ``distributed.json``; empty without a launcher."""
    driver = getattr(trainer, "distributed", None)
    if driver is None:
        return {}
    is_mpi = type(driver).__name__ == "MPI" or hasattr(driver, "mpi_additional_options")
    shown = {"process_count_per_node": None, **_fields(driver)}
    return shown | ({"mpi_additional_options": None} if is_mpi else {})


def _channel(given: Any) -> dict[str, Any]:
    source = given.data_source
    if isinstance(source, str):
        # A local path is staged, as the SDK does.
        prefix = {
            "S3DataType": "S3Prefix",
            "S3Uri": source,
            "S3DataDistributionType": "FullyReplicated",
        }
        plain: dict[str, Any] = {"DataSource": {"S3DataSource": prefix}}
    else:
        described = dict(_plain(source))
        kind = (
            "FileSystemDataSource"
            if "FileSystemId" in described
            else "S3DataSource"
            if "S3Uri" in described
            else None
        )
        plain = {"DataSource": {kind: described} if kind else described}
    channel = {name: value for name, value in _plain(given).items() if name != "DataSource"}
    return {**channel, **plain}


def _fields(value: Any) -> dict[str, Any]:
    """The set attributes of one of the SDK's objects, by their own names."""
    return {name: inner for name, inner in vars(value).items() if _is_set(inner)}


def _plain(value: Any) -> Any:
    """One of the SDK's objects in the terms of the request, without attributes that are not set."""
    if not _is_set(value):
        return None
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, str | int | float | bool):
        return value
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if isinstance(value, Mapping):
        return {_request_name(name): _plain(inner) for name, inner in value.items()}
    if not hasattr(value, "__dict__") or callable(value):
        raise JobNotImportable(
            f"got {type(value).__name__}, expected a value that is known before the job starts"
        )
    return {_request_name(name): _plain(inner) for name, inner in _fields(value).items()}


def _is_set(value: Any) -> bool:
    return value is not None and type(value).__name__ != "Unassigned"


def _request_name(name: str) -> str:
    """The request's name of a field: ``volume_size_in_gb`` → ``VolumeSizeInGB``."""
    return "".join(
        part if part[:1].isupper() else part.capitalize() for part in name.split("_")
    ).replace("InGb", "InGB")
