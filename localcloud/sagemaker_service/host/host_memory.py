"""The memory of a host of type local.cpu, which each process of a run may allocate."""

import os
from pathlib import Path

from localcloud.sagemaker_service.instance_table import LocalInstanceType

GIB = 2**30
# The rest is for the local cloud, and for the other programs of this machine.
PART_OF_MACHINE = 0.8
CONTAINER_LIMIT = Path("/sys/fs/cgroup/memory.max")


def host_memory_bytes(
    instance_type: LocalInstanceType, host_count: int, *, stated_gib: float | None = None
) -> int | None:
    """Hosts share the machine evenly. None for devices with a memory of their own, which the run may fill."""
    if instance_type.gpu_count:
        return None
    whole = machine_memory_bytes() * PART_OF_MACHINE if stated_gib is None else stated_gib * GIB
    return int(whole / host_count)


def machine_memory_bytes(container_limit: Path = CONTAINER_LIMIT) -> int:
    """Of this machine, or of the container if that has less."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        return min(machine, int(container_limit.read_text()))
    except (OSError, ValueError):
        return machine
