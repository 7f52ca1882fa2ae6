"""The devices that a run may use: what the loop has to know of one, and no more."""

from collections.abc import Iterable
from typing import Protocol

import torch
from torch import nn

from traindyno.callbacks.clock import HostClock
from training.data.batch import Batch


class Accelerator(Protocol):
    """``process_group_backend`` is what collectives of this device's tensors use."""

    device: torch.device
    name: str
    process_group_backend: str
    averages_gradients_itself: bool  # its tensors can't go through DistributedDataParallel

    def make_clock(self) -> HostClock: ...

    def peak_memory_bytes(self) -> int | None: ...

    def to_device(self, batch: Batch) -> Batch: ...

    def average_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        """Over all processes, after the backward pass; only where ``averages_gradients_itself``."""

    def end_step(self) -> None:
        """After the optimizer's step: a device that gathers work into graphs starts it here."""
