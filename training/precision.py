"""Number formats of a run: autocast for 16-bit ones, and loss scaling where gradients would underflow."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch.optim import Optimizer

from traindyno.core.suite.suite import Precision
from training.loss_scaling import LossScaler

LOWER_TYPES = {Precision.FP32: None, Precision.BF16: torch.bfloat16, Precision.FP16: torch.float16}


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberFormat:
    """``scaler`` is disabled, and then passes everything through, unless the format is fp16."""

    lower_type: torch.dtype | None
    device_type: str
    scaler: torch.amp.GradScaler

    def autocast(self) -> torch.autocast | None:
        if self.lower_type is None:
            return None
        return torch.autocast(self.device_type, self.lower_type)

    def scale(self, loss: torch.Tensor) -> torch.Tensor:
        scaled: torch.Tensor = self.scaler.scale(loss)
        return scaled

    def step(self, optimizer: Optimizer, clip: Callable[[], None], agree: Callable[[torch.Tensor], None]) -> None:
        """Unscale, let ranks agree on an overflow, clip, and step unless a gradient overflowed."""
        if not self.scaler.is_enabled():
            clip()
            optimizer.step()
            return
        self.scaler.unscale_(optimizer)
        for overflow in self.scaler._per_optimizer_states[id(optimizer)]["found_inf_per_device"].values():
            agree(overflow)
        clip()
        self.scaler.step(optimizer)
        self.scaler.update()


def number_format(precision: Precision, device: torch.device) -> NumberFormat:
    is_scaled = precision is Precision.FP16
    scaler = LossScaler(device.type, enabled=is_scaled)
    return NumberFormat(lower_type=LOWER_TYPES[precision], device_type=device.type, scaler=scaler)
