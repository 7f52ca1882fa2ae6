"""The number format of a run's computations.

The loss is scaled where gradients would underflow. Gradients have any shape [...].
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch.optim import Optimizer

from traindyno.core.suite.choices import Precision
from training.models.gradients import local_gradients

LOWER_TYPES = {Precision.FP32: None, Precision.BF16: torch.bfloat16, Precision.FP16: torch.float16}


class LossScaler(torch.amp.GradScaler):
    """Scales losses of models that are sharded over ranks, too: each rank unscales and checks the
    slices that it holds, DTensors or not.
    """

    def _unscale_grads_(
        self,
        optimizer: Optimizer,
        inv_scale: torch.Tensor,
        found_inf: torch.Tensor,
        allow_fp16: bool,
    ) -> dict[torch.device, torch.Tensor]:
        """Unscales gradients by ``inv_scale`` [] and sets ``found_inf`` [] to 1 if one is not
        finite.
        """
        parameters = (
            parameter for group in optimizer.param_groups for parameter in group["params"]
        )
        gradients = local_gradients(parameters)
        if gradients:
            torch._amp_foreach_non_finite_check_and_unscale_(gradients, found_inf, inv_scale)
        return {found_inf.device: found_inf}


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberFormat:
    """The number format of a run's computations."""

    lower_type: torch.dtype | None
    device_type: str
    #: It is disabled, and then has no effect, unless the format is fp16.
    scaler: torch.amp.GradScaler

    def autocast(self) -> torch.autocast | None:
        if self.lower_type is None:
            return None
        return torch.autocast(self.device_type, self.lower_type)

    def scale(self, loss: torch.Tensor) -> torch.Tensor:
        """Takes ``loss`` [] and returns []."""
        scaled: torch.Tensor = self.scaler.scale(loss)
        return scaled

    def step(
        self, optimizer: Optimizer, clip: Callable[[], None], agree: Callable[[torch.Tensor], None]
    ) -> None:
        """Unscale, let ranks agree on an overflow [], clip, and step unless a gradient
        overflowed.
        """
        if not self.scaler.is_enabled():
            clip()
            optimizer.step()
            return
        self.scaler.unscale_(optimizer)
        for overflow in self.scaler._per_optimizer_states[id(optimizer)][
            "found_inf_per_device"
        ].values():
            agree(overflow)
        clip()
        self.scaler.step(optimizer)
        self.scaler.update()


def number_format(precision: Precision, device: torch.device) -> NumberFormat:
    is_scaled = precision is Precision.FP16
    scaler = LossScaler(device.type, enabled=is_scaled)
    return NumberFormat(lower_type=LOWER_TYPES[precision], device_type=device.type, scaler=scaler)
