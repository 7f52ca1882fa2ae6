"""The devices that a run may use, with the operations that the training loop needs.

A device of one compiler only is in that compiler's module.
"""

from collections.abc import Iterable

import torch
from torch import nn

from traindyno.callbacks.clock import CudaClock, HostClock
from traindyno.callbacks.environment import peak_memory_bytes_of_host
from training.data.batch import Batch
from training.errors import WorkloadError
from training.process.process_group import Topology

#: The batches of a step, one for each forward pass, with their samples and tokens, which are
#: counted on the host.
CountedStep = tuple[list[Batch], int, int]


class Accelerator:
    """A device with its operations."""

    device: torch.device
    name: str
    #: The backend of collectives over the device's tensors.
    process_group_backend: str
    averages_gradients = False  # DistributedDataParallel does it

    def make_clock(self) -> HostClock:
        return HostClock()

    def peak_memory_bytes(self) -> int | None:
        """The most memory that tensors have taken; None if the device does not tell."""
        return None

    def to_device(self, batch: Batch) -> Batch:
        return {name: tensor.to(self.device, non_blocking=True) for name, tensor in batch.items()}

    def load_ahead(self, steps: Iterable[CountedStep]) -> Iterable[CountedStep]:
        """A device may load and move the next steps while it works on one."""
        return steps

    def average_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        """Averages gradients over all processes after the backward pass.

        It is called where the device ``averages_gradients``.
        """

    def end_step(self) -> None:
        """Called after the optimizer's step: a device that records operations in graphs runs the
        graph here.
        """


class Cpu(Accelerator):
    device = torch.device("cpu")
    name = "cpu"
    process_group_backend = "gloo"

    def peak_memory_bytes(self) -> int | None:
        return peak_memory_bytes_of_host()


class Cuda(Accelerator):
    """The host's CUDA device with this process's local rank."""

    name = "cuda"
    process_group_backend = "cpu:gloo,cuda:nccl"

    def __init__(self, local_rank: int) -> None:
        self.device = torch.device("cuda", local_rank)
        torch.cuda.set_device(self.device)

    def make_clock(self) -> HostClock:
        return CudaClock()

    def peak_memory_bytes(self) -> int | None:
        return torch.cuda.max_memory_allocated(self.device)


def cuda_or_cpu(topology: Topology) -> Accelerator:
    """The device of a run whose compiler does not choose one."""
    if not torch.cuda.is_available():
        return Cpu()
    if topology.local_world_size > torch.cuda.device_count():
        raise WorkloadError(
            f"{topology.local_world_size} processes were started on {topology.host}, which has "
            f"{torch.cuda.device_count()} CUDA devices; expected one process per device"
        )
    return Cuda(topology.local_rank)
