"""How the training toolkit starts a job's processes, in the hyperparameters that the SageMaker SDK sends for it."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from traindyno.core.instances.instance_types import AcceleratorKind, InstanceType
from traindyno.core.suite.job_limits_check import MODEL_PARALLEL_PARAMETERS, MPI_OPTIONS
from traindyno.core.suite.suite import Compiler, Settings, Strategy
from traindyno.sagemaker.image_uris import framework_version

FIRST_TORCHRUN_VERSION = (1, 13, 1)


class Launcher(StrEnum):
    PROCESS = "process"
    TORCHRUN = "torch_distributed"
    PYTORCH_DDP = "pytorchddp"
    SMDDP = "smddp"
    XLA_SPAWN = "pytorchxla"
    MODEL_PARALLEL = "smp_v1"


def select_launcher(
    settings: Settings, instance_type: InstanceType, image_uri: str, hyperparameters: Mapping[str, Any]
) -> Launcher:
    """``pytorchddp`` for GPU images older than torchrun's support; SMP v1 where a script gets ``mp_parameters``."""
    if MODEL_PARALLEL_PARAMETERS in hyperparameters:
        return Launcher.MODEL_PARALLEL
    if settings.strategy is Strategy.SMDDP:
        return Launcher.SMDDP
    is_gpu = instance_type.accelerator_kind is AcceleratorKind.GPU and not instance_type.is_local
    if settings.compiler is Compiler.XLA and is_gpu:
        return Launcher.XLA_SPAWN
    if settings.strategy is Strategy.SINGLE:
        return Launcher.PROCESS
    version = framework_version(image_uri)
    if is_gpu and version is not None and version < FIRST_TORCHRUN_VERSION:
        return Launcher.PYTORCH_DDP
    return Launcher.TORCHRUN


def launcher_hyperparameters(
    launcher: Launcher, instance_type: InstanceType, hyperparameters: Mapping[str, Any]
) -> dict[str, Any]:
    """Not yet JSON-encoded; keys and values equal the SDK's own."""
    on_type = {"sagemaker_instance_type": instance_type.name}
    match launcher:
        case Launcher.PROCESS:
            return {}
        case Launcher.TORCHRUN:
            return {"sagemaker_torch_distributed_enabled": True, **on_type}
        case Launcher.PYTORCH_DDP:
            return {"sagemaker_pytorch_ddp_enabled": True, **on_type}
        case Launcher.SMDDP:
            return {
                "sagemaker_distributed_dataparallel_enabled": True,
                **on_type,
                "sagemaker_distributed_dataparallel_custom_mpi_options": "",
            }
        case Launcher.XLA_SPAWN:
            return {
                "sagemaker_pytorch_xla_multi_worker_enabled": True,
                "sagemaker_training_compiler_enabled": True,
                "sagemaker_training_compiler_debug_mode": False,
            }
        case Launcher.MODEL_PARALLEL:
            return {
                "sagemaker_mpi_enabled": True,
                "sagemaker_mpi_num_of_processes_per_host": instance_type.devices_per_instance,
                MPI_OPTIONS: hyperparameters.get(MPI_OPTIONS, ""),
                "sagemaker_distributed_dataparallel_enabled": False,
                **on_type,
            }
