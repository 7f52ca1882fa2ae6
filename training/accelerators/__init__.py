"""The devices that a run may use, with the operations that the training loop needs."""

from collections.abc import Callable, Iterable
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

    def make_clock(self) -> HostClock: ...

    def peak_memory_bytes(self) -> int | None: ...

    def to_device(self, batch: Batch) -> Batch: ...

    @property
    def average_gradients(self) -> Callable[[Iterable[nn.Parameter]], None] | None:
        """Average gradients over all processes, after the backward pass; None if DistributedDataParallel does it."""

    def end_step(self) -> None:
        """After the optimizer's step: a device that records operations in graphs runs the graph here."""
