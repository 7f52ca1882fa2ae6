"""The host's processor."""

from collections.abc import Iterable

import torch
from torch import nn

from traindyno.callbacks.clock import HostClock
from traindyno.callbacks.environment import peak_memory_bytes
from training.data.batch import Batch


class Cpu:
    device = torch.device("cpu")
    name = "cpu"
    process_group_backend = "gloo"
    averages_gradients_itself = False

    def make_clock(self) -> HostClock:
        return HostClock()

    def peak_memory_bytes(self) -> int | None:
        return peak_memory_bytes()

    def to_device(self, batch: Batch) -> Batch:
        return batch

    def average_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        raise NotImplementedError("gradients of this device are averaged by DistributedDataParallel")

    def end_step(self) -> None:
        pass
