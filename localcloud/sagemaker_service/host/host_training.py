"""The training of a job: a launcher for each host, until they end or the job is stopped."""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from localcloud.ports import free_port
from localcloud.sagemaker_service.host.container_tree import HostTree
from localcloud.sagemaker_service.host.host_processes import (
    HostOrder,
    HostProcesses,
    end_stray_processes,
    process_mark,
    share_cores,
)
from localcloud.sagemaker_service.host.process_environment import LocalImage, process_environment
from localcloud.sagemaker_service.host.toolkit import (
    HostResources,
    ToolkitProgram,
    container_hyperparameters,
    launch_command,
    read_program,
)
from localcloud.sagemaker_service.jobs.faults import Stops
from localcloud.sagemaker_service.jobs.job import TrainingJob
from localcloud.sagemaker_service.jobs.job_work import is_shared
from localcloud.sagemaker_service.settings import ServiceSettings
from traindyno.callbacks.failure import count_oom_kills

GIB = 2**30
# The rest is for the local cloud, and for the other programs of this machine.
PART_OF_MACHINE = 0.8
CONTAINER_LIMIT = Path("/sys/fs/cgroup/memory.max")
LOOK_AGAIN_SECONDS = 0.2
# A supervisor that has not ended its host so long after the grace time may have been stopped by
# SIGSTOP itself.
SUPERVISOR_SECONDS = 10.0


def host_memory_bytes(
    gpu_count: int, host_count: int, *, stated_gib: float | None = None
) -> int | None:
    """Hosts share the machine evenly.

    None for devices with a memory of their own, which the run may fill.
    """
    if gpu_count:
        return None
    whole = machine_memory_bytes() * PART_OF_MACHINE if stated_gib is None else stated_gib * GIB
    return int(whole / host_count)


def machine_memory_bytes(container_limit: Path = CONTAINER_LIMIT) -> int:
    """Memory of this machine, or of the container if it has less."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        return min(machine, int(container_limit.read_text()))
    except (OSError, ValueError):
        return machine


class ServiceEnding(Exception):
    """The service ends.

    The job's processes end immediately, and the next start of the service finds its record.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingEnd:
    """How a training ended.

    ``first_failed`` is the host that failed first, ``oom_kills`` the number of processes that the
    kernel killed for memory.
    """

    exit_codes: Mapping[str, int]
    first_failed: str | None
    command: Sequence[str]
    oom_kills: int

    @property
    def is_success(self) -> bool:
        return not any(self.exit_codes.values())


def host_orders(
    job: TrainingJob,
    trees: Sequence[HostTree],
    *,
    image: LocalImage,
    settings: ServiceSettings,
    gpu_count: int,
    packages: Path | None,
    logs: Mapping[str, Path],
    stops: Stops | None,
    temporary: Path,
) -> list[HostOrder]:
    """What the supervisor of each host runs.

    Args:
        job: The training job.
        trees: The folders of its hosts.
        image: The stand-in of the job's image.
        settings: The settings of the service.
        gpu_count: The GPUs of each host.
        packages: The folder of the packages that the source's requirements.txt adds, if any.
        logs: The log file of each host.
        stops: Which processes get SIGTERM at a stop; None for the usual ones of such a job.
        temporary: The folder of the job's temporary files.
    """
    stops = stops or (Stops.LAUNCHER if is_shared(job) else Stops.ALL)
    master_port = free_port()
    memory_bytes = host_memory_bytes(gpu_count, len(trees), stated_gib=settings.local_memory_gib)
    hosts = zip(trees, share_cores(settings.cores, len(trees)), strict=True)
    orders = []
    for rank, (tree, cores) in enumerate(hosts):
        resources = HostResources(
            gpu_count=gpu_count, core_count=len(cores), master_port=master_port
        )
        program = _program_on(tree, job)
        order = HostOrder(
            host=tree.host,
            root=tree.root,
            command=launch_command(
                program, python=image.python, job=job, host_rank=rank, resources=resources
            ),
            environment=process_environment(
                job,
                program,
                tree,
                resources,
                image=image,
                packages=packages,
                settings=settings,
                shell=os.environ,
                temporary=temporary,
            ),
            folder=tree.root / "code",
            log=logs[tree.host],
            cores=cores,
            stops=stops,
            memory_bytes=memory_bytes,
        )
        orders.append(order)
    return orders


def _program_on(tree: HostTree, job: TrainingJob) -> ToolkitProgram:
    """The program of the job, with the paths that it has on this host."""
    hyperparameters = container_hyperparameters(job, tree)
    return read_program(replace(job, request={**job.request, "HyperParameters": hyperparameters}))


def train(
    job: TrainingJob,
    orders: Sequence[HostOrder],
    *,
    order_folder: Path,
    settings: ServiceSettings,
    should_stop: Callable[[], bool],
    is_service_ending: Callable[[], bool],
) -> TrainingEnd:
    """Trains until the launchers end."""
    hosts = HostProcesses(
        orders, order_folder=order_folder, grace_seconds=settings.stop_grace_seconds
    )
    killed_at = float("inf")
    is_stopping = False
    kills_before = count_oom_kills()
    try:
        while (exit_codes := hosts.wait(LOOK_AGAIN_SECONDS)) is None:
            if is_service_ending():
                raise ServiceEnding
            if not is_stopping and should_stop():
                is_stopping = True
                killed_at = time.monotonic() + settings.stop_grace_seconds + SUPERVISOR_SECONDS
                hosts.stop()
            if time.monotonic() >= killed_at:
                hosts.kill()
                end_stray_processes(process_mark(job, settings))
    finally:
        hosts.close()
    return TrainingEnd(
        exit_codes=exit_codes,
        first_failed=hosts.first_failed,
        command=orders[0].command,
        oom_kills=count_oom_kills() - kills_before,
    )
