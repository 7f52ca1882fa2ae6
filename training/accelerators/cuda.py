"""One CUDA device of this host, the one with this process's local rank."""

import torch

from traindyno.callbacks.clock import CudaClock, HostClock
from training.data.batch import Batch


class Cuda:
    name = "cuda"
    process_group_backend = "cpu:gloo,cuda:nccl"
    average_gradients = None

    def __init__(self, local_rank: int) -> None:
        self.device = torch.device("cuda", local_rank)
        torch.cuda.set_device(self.device)

    def make_clock(self) -> HostClock:
        return CudaClock()

    def peak_memory_bytes(self) -> int | None:
        return torch.cuda.max_memory_allocated(self.device)

    def to_device(self, batch: Batch) -> Batch:
        return {name: tensor.to(self.device, non_blocking=True) for name, tensor in batch.items()}

    def end_step(self) -> None:
        pass
