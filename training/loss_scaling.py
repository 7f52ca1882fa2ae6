"""Loss scaling for models that are cut over ranks, some of whose gradients are DTensors and others are not."""

import torch
from torch.optim import Optimizer

from training.gradients import local_gradients


class LossScaler(torch.amp.GradScaler):
    """Each rank unscales and checks the slices that it holds."""

    def _unscale_grads_(
        self, optimizer: Optimizer, inv_scale: torch.Tensor, found_inf: torch.Tensor, allow_fp16: bool
    ) -> dict[torch.device, torch.Tensor]:
        parameters = (parameter for group in optimizer.param_groups for parameter in group["params"])
        gradients = local_gradients(parameters)
        if gradients:
            torch._amp_foreach_non_finite_check_and_unscale_(gradients, found_inf, inv_scale)
        return {found_inf.device: found_inf}
