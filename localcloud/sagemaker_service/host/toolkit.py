"""Makes a command line and environment variables of hyperparameters, as SageMaker's training
toolkit does.
"""

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from localcloud.ports import LOOPBACK
from localcloud.sagemaker_service.host.container_tree import (
    HostTree,
    channel_config,
    resource_config,
)
from localcloud.sagemaker_service.jobs.job import TrainingJob, decoded
from localcloud.sagemaker_service.storage.safe_paths import stays_inside
from traindyno.core.suite.arguments import command_arguments

TORCHRUN = Path(__file__).parent / "loopback_torchrun.py"
PREFIX = "sagemaker_"
OWN_NAMES = frozenset(
    PREFIX + name
    for name in (
        "submit_directory",
        "program",
        "container_log_level",
        "job_name",
        "region",
        "enable_cloudwatch_metrics",
    )
)
TORCHRUN_FLAG = "sagemaker_torch_distributed_enabled"
OTHER_LAUNCHERS = {
    "sagemaker_distributed_dataparallel_enabled": "SMDDP",
    "sagemaker_pytorch_ddp_enabled": "mpirun (pytorchddp)",
    "sagemaker_pytorch_xla_multi_worker_enabled": "xla_spawn",
    "sagemaker_mpi_enabled": "mpirun",
}


class UnsupportedJob(Exception):
    """The job needs something that this machine doesn't offer, such as its container."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolkitProgram:
    """What a job's hyperparameters say. ``user`` has the decoded ones that the script receives."""

    source_uri: str
    entry_point: str
    uses_torchrun: bool
    log_level: int
    user: Mapping[str, Any]
    framework: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class HostResources:
    gpu_count: int
    core_count: int
    master_port: int

    @property
    def processes(self) -> int:
        """How many torchrun starts on the host."""
        return max(self.gpu_count, 1)


def read_program(job: TrainingJob) -> ToolkitProgram:
    hyperparameters = job.hyperparameters
    algorithm = job.request["AlgorithmSpecification"]
    if algorithm.get("ContainerEntrypoint") or not hyperparameters.get("sagemaker_program"):
        raise UnsupportedJob(
            "a container's own entry point can't be run: this local service runs script-mode jobs "
            "(hyperparameters sagemaker_program and sagemaker_submit_directory)"
        )
    entry_point = hyperparameters["sagemaker_program"]
    if not stays_inside(str(entry_point)):
        raise UnsupportedJob(
            f"sagemaker_program {entry_point!r} may be outside of the source archive: expected a "
            "path without a leading '/' and without '..'"
        )
    for flag, launcher in OTHER_LAUNCHERS.items():
        if hyperparameters.get(flag) is True:
            raise UnsupportedJob(
                f"{flag}: {launcher} is not offered; this local service launches Python and "
                "torchrun"
            )
    return ToolkitProgram(
        source_uri=str(hyperparameters.get("sagemaker_submit_directory", "")),
        entry_point=str(hyperparameters["sagemaker_program"]),
        uses_torchrun=hyperparameters.get(TORCHRUN_FLAG) is True,
        log_level=int(hyperparameters.get("sagemaker_container_log_level", 20)),
        user={
            name: value for name, value in hyperparameters.items() if not name.startswith(PREFIX)
        },
        framework={
            name: value
            for name, value in hyperparameters.items()
            if name.startswith(PREFIX) and name not in OWN_NAMES
        },
    )


def launch_command(
    program: ToolkitProgram,
    *,
    python: str,
    job: TrainingJob,
    host_rank: int,
    resources: HostResources,
) -> list[str]:
    """The toolkit gives the script's line to a shell without quotes, which splits it at spaces and
    reads ``;&|<>$``.
    """
    script = [program.entry_point, *command_arguments(program.user)]
    command = _started_by_toolkit(
        program, python=python, job=job, host_rank=host_rank, resources=resources
    )
    if all(shlex.quote(word) == word for word in script):
        return [*command, *script]
    return ["/bin/sh", "-c", " ".join(["exec", *map(shlex.quote, command), *script])]


def _started_by_toolkit(
    program: ToolkitProgram,
    *,
    python: str,
    job: TrainingJob,
    host_rank: int,
    resources: HostResources,
) -> list[str]:
    if not program.uses_torchrun:
        return [python]
    # With -P, the modules in this program's folder can't replace modules of the standard library.
    command = [python, "-P", str(TORCHRUN)]
    command += ["--nnodes", str(job.instance_count), "--nproc_per_node", str(resources.processes)]
    # Each job has its own port, also with one host, because several jobs share this machine.
    command += [
        "--rdzv_backend",
        "loopback",
        "--rdzv_endpoint",
        f"{LOOPBACK}:{resources.master_port}",
    ]
    command += ["--rdzv_conf", f"rank={host_rank}", "--local_addr", LOOPBACK]
    return command


def toolkit_environment(
    job: TrainingJob, program: ToolkitProgram, tree: HostTree, resources: HostResources
) -> dict[str, str]:
    channels = channel_config(job)
    cluster = resource_config(job, tree.host)
    arguments = command_arguments(program.user)
    values: dict[str, Any] = {
        "hosts": cluster["hosts"],
        "current_host": tree.host,
        "current_instance_type": job.instance_type,
        "current_instance_group": cluster["current_group_name"],
        "current_instance_group_hosts": cluster["hosts"],
        "instance_groups": [cluster["current_group_name"]],
        "is_hetero": False,
        "network_interface_name": cluster["network_interface_name"],
        "resource_config": cluster,
        "input_data_config": channels,
        "channels": sorted(channels),
        "hps": program.user,
        "framework_params": program.framework,
        "framework_module": "sagemaker_pytorch_container.training:main",
        "user_entry_point": program.entry_point,
        "user_args": arguments,
        "module_name": Path(program.entry_point).stem,
        "module_dir": program.source_uri,
        "log_level": program.log_level,
        "input_dir": str(tree.root / "input"),
        "input_config_dir": str(tree.root / "input/config"),
        "output_dir": str(tree.root / "output"),
        "output_data_dir": str(tree.root / "output/data"),
        "output_intermediate_dir": str(tree.root / "output/intermediate"),
        "model_dir": str(tree.root / "model"),
        "num_cpus": resources.core_count,
        "num_gpus": resources.gpu_count,
        "num_neurons": 0,
    }
    values |= {f"channel_{name}": str(tree.root / "input/data" / name) for name in channels}
    values |= {f"hp_{name}": value for name, value in program.user.items()}
    texts = {name: "" if value is None else value for name, value in values.items()}
    environment = {
        f"SM_{name.upper()}": value
        if isinstance(value, str)
        else json.dumps(value, sort_keys=True, separators=(",", ":"))
        for name, value in texts.items()
    }
    return {name: tree.localised(value) for name, value in environment.items()}


def container_hyperparameters(job: TrainingJob, tree: HostTree) -> dict[str, str]:
    """The hyperparameters with this host's paths instead of container paths, also inside JSON
    documents.
    """
    return {
        name: _with_local_paths(value, tree)
        for name, value in job.request.get("HyperParameters", {}).items()
    }


def _with_local_paths(value: str, tree: HostTree) -> str:
    document = decoded(value)
    localised = _localised(document, tree)
    if localised == document:
        return value
    return localised if isinstance(localised, str) and document == value else json.dumps(localised)


def _localised(value: Any, tree: HostTree) -> Any:
    match value:
        case str():
            return tree.localised(value)
        case dict():
            return {name: _localised(element, tree) for name, element in value.items()}
        case list():
            return [_localised(element, tree) for element in value]
        case _:
            return value
