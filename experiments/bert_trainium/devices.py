"""What the two sides of the comparison do differently: DDP on CUDA or a CPU, PyTorch/XLA on
Trainium as in the post.
"""

import importlib.util
import os
from abc import ABC, abstractmethod
from typing import Any, Dict, Iterable

import torch
from torch import distributed
from torch.nn.parallel import DistributedDataParallel

LOSS_INTERVAL = 100  # steps; reading a loss from an XLA device waits for it


class Device(ABC):
    """One process's device and its process group."""

    rank: int
    world_size: int

    @abstractmethod
    def wrap(self, model: Any) -> Any:
        """The model on the device, with gradients averaged over processes by ``step`` at the
        latest.
        """

    @abstractmethod
    def loader(self, loader: Any) -> Iterable[Any]:
        """Batches on the device."""

    @abstractmethod
    def step(self, optimizer: Any) -> None:
        """One optimizer step."""

    @abstractmethod
    def reads_loss_after(self, steps: int) -> bool:
        """Whether to read the loss of the next step, which costs time on some devices."""

    @abstractmethod
    def totals(self, counts: Dict[str, float]) -> Dict[str, float]:
        """Sums over all processes."""

    @abstractmethod
    def save(self, model: Any, folder: str) -> None:
        """The weights, from the first process."""


class TorchDevice(Device):
    def __init__(self) -> None:
        has_cuda = torch.cuda.is_available()
        distributed.init_process_group(backend="nccl" if has_cuda else "gloo")
        self.rank = distributed.get_rank()
        self.world_size = distributed.get_world_size()
        self._device = (
            torch.device("cuda", int(os.environ["LOCAL_RANK"])) if has_cuda else torch.device("cpu")
        )
        if has_cuda:
            torch.cuda.set_device(self._device)

    def wrap(self, model: Any) -> Any:
        device_ids = [self._device.index] if self._device.type == "cuda" else None
        return DistributedDataParallel(model.to(self._device), device_ids=device_ids)

    def loader(self, loader: Any) -> Iterable[Any]:
        return _MovedBatches(loader, self._device)

    def step(self, optimizer: Any) -> None:
        optimizer.step()

    def reads_loss_after(self, steps: int) -> bool:
        return True  # the step log reads it later, without waiting in the step

    def totals(self, counts: Dict[str, float]) -> Dict[str, float]:
        summed = torch.tensor(list(counts.values()), dtype=torch.float64, device=self._device)
        distributed.all_reduce(summed)
        return dict(zip(counts, summed.tolist()))  # noqa: B905 -- strict= needs Python 3.10

    def save(self, model: Any, folder: str) -> None:
        if self.rank == 0:
            model.save_pretrained(folder)


class _MovedBatches:
    def __init__(self, loader: Any, device: torch.device) -> None:
        self._loader = loader
        self._device = device

    def __iter__(self) -> Any:
        for batch in self._loader:
            yield {name: values.to(self._device) for name, values in batch.items()}


class XlaDevice(Device):
    def __init__(self) -> None:
        # Part of AWS's Neuron images; torch.distributed finds its backend once xla_backend is
        # imported.
        import torch_xla.core.xla_model as xm  # noqa: PLC0415
        import torch_xla.distributed.parallel_loader as pl  # noqa: PLC0415
        import torch_xla.distributed.xla_backend  # noqa: F401, PLC0415

        self._xm = xm
        self._pl = pl
        distributed.init_process_group(backend="xla")
        self.rank = distributed.get_rank()
        self.world_size = distributed.get_world_size()
        self._device = xm.xla_device()

    def wrap(self, model: Any) -> Any:
        return model.to(self._device)

    def loader(self, loader: Any) -> Iterable[Any]:
        return self._pl.MpDeviceLoader(loader, self._device)  # type: ignore[no-any-return]

    def step(self, optimizer: Any) -> None:
        self._xm.optimizer_step(optimizer)

    def reads_loss_after(self, steps: int) -> bool:
        return steps % LOSS_INTERVAL == 0

    def totals(self, counts: Dict[str, float]) -> Dict[str, float]:
        return {name: self._xm.mesh_reduce(name, value, sum) for name, value in counts.items()}

    def save(self, model: Any, folder: str) -> None:
        model.save_pretrained(folder, is_main_process=self.rank == 0, save_function=self._xm.save)


def device_of_this_process() -> Device:
    return XlaDevice() if importlib.util.find_spec("torch_xla") else TorchDevice()
