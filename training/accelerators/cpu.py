"""The host's processor."""

import torch

from traindyno.callbacks.clock import HostClock
from traindyno.callbacks.environment import peak_memory_bytes_of_host
from training.data.batch import Batch


class Cpu:
    device = torch.device("cpu")
    name = "cpu"
    process_group_backend = "gloo"
    average_gradients = None

    def make_clock(self) -> HostClock:
        return HostClock()

    def peak_memory_bytes(self) -> int | None:
        return peak_memory_bytes_of_host()

    def to_device(self, batch: Batch) -> Batch:
        return batch

    def end_step(self) -> None:
        pass
