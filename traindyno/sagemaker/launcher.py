"""The hyperparameters of a job: its own, the place of its code, and the training toolkit's
launcher.
"""

import json
from collections.abc import Mapping
from dataclasses import fields, replace
from enum import StrEnum
from typing import Any

from traindyno.core.errors import TraindynoError
from traindyno.core.instances.devices import AcceleratorKind
from traindyno.core.instances.instance_types import (
    InstanceType,
)
from traindyno.core.run.record import RunMeasurement, RunRecord, record_document
from traindyno.core.run.settings import Settings
from traindyno.core.s3_keys import is_s3_uri
from traindyno.core.suite.arguments import arguments_of
from traindyno.core.suite.aws_images import FIRST_TORCHRUN_VERSION
from traindyno.core.suite.checks.job_limits_check import (
    MODEL_PARALLEL_PARAMETERS,
    MPI_OPTIONS,
    SMDDP_OPTIONS,
)
from traindyno.core.suite.choices import TRAITS, Compiler, Task
from traindyno.core.suite.runs import trained_settings
from traindyno.core.suite.suite import Run, Suite
from traindyno.sagemaker.images import framework_version, is_smp_v2_image, known_type
from traindyno.sagemaker.job_settings import JobSettings

ENTRY_POINT = "traindyno_train.py"
LOG_LEVEL = 20
CODE_CHANNEL = "code"
# The path of the code channel's tarball.
ISOLATED_SOURCE = "/opt/ml/input/data/code/sourcedir.tar.gz"


class Launcher(StrEnum):
    PROCESS = "process"
    TORCHRUN = "torch_distributed"
    PYTORCH_DDP = "pytorchddp"
    SMDDP = "smddp"
    XLA_SPAWN = "pytorchxla"
    MODEL_PARALLEL = "smp_v1"
    MODEL_PARALLEL_V2 = "smp_v2"


class SourceMissing(TraindynoError):
    """No code was staged in S3 for the job to run."""


def build_hyperparameters(
    run: Run, suite: Suite, *, image_uri: str, job_name: str, settings: JobSettings
) -> dict[str, str]:
    own = own_hyperparameters(run, suite)
    instance_type = known_type(run.cell.settings.instance)
    launcher = select_launcher(run.cell.settings, instance_type, image_uri, own)
    launch = launcher_hyperparameters(launcher, instance_type, suite.workload.hyperparameters)
    encoded = toolkit_hyperparameters(
        own, suite, job_name=job_name, settings=settings, launch=launch
    )
    if MODEL_PARALLEL_PARAMETERS in own:
        given = own[MODEL_PARALLEL_PARAMETERS]
        encoded[MODEL_PARALLEL_PARAMETERS] = given if isinstance(given, str) else json.dumps(given)
    return encoded


def toolkit_hyperparameters(
    own: Mapping[str, Any],
    suite: Suite,
    *,
    job_name: str,
    settings: JobSettings,
    launch: Mapping[str, Any] | None = None,
    program: str | None = None,
) -> dict[str, str]:
    """A job's own hyperparameters and the training toolkit's, encoded as JSON.

    ``program``: the file that the toolkit starts; None for the workload's own.
    """
    source = ISOLATED_SOURCE if settings.jobs.isolates_network else find_source(suite, settings)
    values = {
        **own,
        "sagemaker_submit_directory": source,
        "sagemaker_program": program or workload_program(suite),
        "sagemaker_container_log_level": LOG_LEVEL,
        "sagemaker_job_name": job_name,
        "sagemaker_region": settings.region,
        **(launch or {}),
    }
    return {name: json.dumps(value) for name, value in values.items()}


def workload_program(suite: Suite) -> str:
    return suite.workload.entry_point or ENTRY_POINT


def own_hyperparameters(run: Run, suite: Suite) -> dict[str, Any]:
    """Hyperparameters that the run's program receives."""
    if suite.workload.task is Task.SCRIPT:
        given: dict[str, Any] = {**arguments_of(run.cell, suite.workload)}
        seed = suite.measurement.seed_argument
        search = run.cell.settings.batch_search
        confirm = suite.measurement.confirm
        if seed is not None and run.seed is not None:
            given[seed] = run.seed
        if (
            run.confirming_steps is not None
            and confirm is not None
            and confirm.argument is not None
        ):
            given[confirm.argument] = run.confirming_steps
        if search is not None and search.argument is not None:
            given[search.argument] = trained_settings(run).batch_size
        return {name: value for name, value in given.items() if name != SMDDP_OPTIONS}
    return record_document(
        RunRecord(
            run_id=run.run_id,
            # The lab projects the full run; no job has its schedule.
            workload=replace(suite.workload, full_run=None),
            settings=trained_settings(run),
            measurement=_measurement_of(run, suite),
            tokens=run.tokens,
            target=suite.goal.target,
            trial_seed=run.seed,
        )
    )


def _measurement_of(run: Run, suite: Suite) -> RunMeasurement:
    asked = suite.job_measurement
    measurement = RunMeasurement(
        **{field.name: getattr(asked, field.name) for field in fields(RunMeasurement)}
    )
    if run.confirming_steps is None:
        return measurement
    return replace(measurement, max_steps=run.confirming_steps, stop_when=None, least_seconds=None)


def find_source(suite: Suite, settings: JobSettings) -> str:
    """The S3 URI of the tarball with the job's code; raises SourceMissing."""
    source = suite.workload.source if suite.workload.task is Task.SCRIPT else settings.source_s3_uri
    if not is_s3_uri(source):
        code = source or "nothing"
        raise SourceMissing(
            f"suite {suite.name}: its code is {code}, expected s3://…/sourcedir.tar.gz"
        )
    return source


def select_launcher(
    settings: Settings,
    instance_type: InstanceType,
    image_uri: str,
    hyperparameters: Mapping[str, Any],
) -> Launcher:
    """Launcher of a script's processes.

    It is ``pytorchddp`` for GPU images older than torchrun's support, and SMP if the script has
    ``mp_parameters``.
    """
    if MODEL_PARALLEL_PARAMETERS in hyperparameters:
        return Launcher.MODEL_PARALLEL_V2 if is_smp_v2_image(image_uri) else Launcher.MODEL_PARALLEL
    if TRAITS[settings.strategy].sagemaker_collectives:
        return Launcher.SMDDP
    is_gpu = instance_type.accelerator_kind is AcceleratorKind.GPU and not instance_type.is_local
    if settings.compiler is Compiler.XLA and is_gpu:
        return Launcher.XLA_SPAWN
    if TRAITS[settings.strategy].one_process:
        return Launcher.PROCESS
    version = framework_version(image_uri)
    if is_gpu and version is not None and version < FIRST_TORCHRUN_VERSION:
        return Launcher.PYTORCH_DDP
    return Launcher.TORCHRUN


def launcher_hyperparameters(
    launcher: Launcher, instance_type: InstanceType, hyperparameters: Mapping[str, Any]
) -> dict[str, Any]:
    """Keys and values equal the SDK's own; they are not JSON-encoded yet."""
    name = {"sagemaker_instance_type": instance_type.name}
    no_smddp: dict[str, Any] = {"sagemaker_distributed_dataparallel_enabled": False}
    torchrun: dict[str, Any] = {"sagemaker_torch_distributed_enabled": True}
    match launcher:
        case Launcher.PROCESS:
            flags: dict[str, Any] = {}
        case Launcher.TORCHRUN:
            flags = torchrun | name
        case Launcher.PYTORCH_DDP:
            flags = {"sagemaker_pytorch_ddp_enabled": True, **name}
        case Launcher.SMDDP:
            options = hyperparameters.get(SMDDP_OPTIONS, "")
            flags = {
                "sagemaker_distributed_dataparallel_enabled": True,
                **name,
                SMDDP_OPTIONS: options,
            }
        case Launcher.XLA_SPAWN:
            flags = {
                "sagemaker_pytorch_xla_multi_worker_enabled": True,
                "sagemaker_training_compiler_enabled": True,
                "sagemaker_training_compiler_debug_mode": False,
            }
        case Launcher.MODEL_PARALLEL_V2:
            flags = no_smddp | torchrun | name
        case Launcher.MODEL_PARALLEL:
            flags = {
                "sagemaker_mpi_enabled": True,
                "sagemaker_mpi_num_of_processes_per_host": instance_type.devices_per_instance,
                MPI_OPTIONS: hyperparameters.get(MPI_OPTIONS, ""),
                **no_smddp,
                **name,
            }
    return flags
