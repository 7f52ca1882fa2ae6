"""The device of a run whose compiler does not choose one."""

import torch

from training.accelerators import Accelerator
from training.accelerators.cpu import Cpu
from training.accelerators.cuda import Cuda
from training.errors import WorkloadError
from training.process.topology import Topology


def cuda_or_cpu(topology: Topology) -> Accelerator:
    if not torch.cuda.is_available():
        return Cpu()
    if topology.local_world_size > torch.cuda.device_count():
        raise WorkloadError(
            f"{topology.local_world_size} processes were started on {topology.host}, which has "
            f"{torch.cuda.device_count()} CUDA devices; expected one process per device"
        )
    return Cuda(topology.local_rank)
