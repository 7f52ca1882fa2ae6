"""Clips gradients by their norm, averages them over replicas where no wrapper does, measures their
parts, and scales the loss where they would underflow in the run's number format. Gradients have any
shape [...].
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
from torch import distributed, nn
from torch._utils import _unflatten_dense_tensors
from torch.distributed import ProcessGroup
from torch.distributed.tensor import DTensor
from torch.optim import Optimizer
from transformers import PreTrainedModel

from traindyno.core.suite.choices import Precision
from training.models.config_numbers import NOT_BUILT, count_in, text_of

LEAST_NORM = 1e-6
PROBE_TOKENS = 8
LOWER_TYPES = {Precision.FP32: None, Precision.BF16: torch.bfloat16, Precision.FP16: torch.float16}


def local_gradients(parameters: Iterable[nn.Parameter]) -> list[torch.Tensor]:
    """The gradients that there are; of one that is spread over ranks, this rank's slice."""
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    return [
        gradient.to_local() if isinstance(gradient, DTensor) else gradient for gradient in gradients
    ]


def sum_gradients(
    parameters: Iterable[nn.Parameter], group: ProcessGroup, *, divisor: int = 1
) -> None:
    """Sums over the group and divides, in place, in one message per number format."""
    by_type: dict[torch.dtype, list[torch.Tensor]] = {}
    for gradient in local_gradients(parameters):
        by_type.setdefault(gradient.dtype, []).append(gradient)
    for gradients in by_type.values():
        flat = torch.cat([gradient.reshape(-1) for gradient in gradients])
        distributed.all_reduce(flat, group=group)
        flat /= divisor
        torch._foreach_copy_(gradients, _unflatten_dense_tensors(flat, gradients))  # type: ignore[no-untyped-call]


def sum_of_squares(gradients: list[torch.Tensor], device: torch.device) -> torch.Tensor:
    """Returns [], the sum over all elements of all ``gradients`` [...]."""
    if not gradients:
        return torch.zeros((), device=device)
    return torch.stack(torch._foreach_norm(gradients)).float().square().sum()


def scale_to_norm(gradients: list[torch.Tensor], norm: torch.Tensor, max_norm: float) -> None:
    """Scales ``gradients`` [...] as torch.nn.utils.clip_grad_norm_ does, by a ``norm`` [] that is
    already known.
    """
    if gradients:
        torch._foreach_mul_(gradients, (max_norm / (norm + LEAST_NORM)).clamp(max=1.0))


def drop_gradients(optimizer: Optimizer) -> None:
    """Does what ``optimizer.zero_grad()`` does, without the profiler's record around it."""
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            parameter.grad = None


def leaves_parameters_out(model: PreTrainedModel, device: torch.device) -> bool:
    """Whether a few tokens leave a trained parameter without a gradient; also if the model takes no
    such tokens.

    Longformer's global attention is an example, and experts that are chosen for no token.
    """
    tokens = torch.zeros((1, PROBE_TOKENS), dtype=torch.int64, device=device)
    text = text_of(model.config)
    end = count_in(text, "eos_token_id")  # some read the state of this token
    if end is not None and 0 < end < (count_in(text, "vocab_size") or 0):
        tokens[:, -1] = end
    was_training = model.training
    try:
        model.train(False)
        with torch.random.fork_rng(devices=[]), torch.enable_grad():
            trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
            gradients = torch.autograd.grad(
                model(input_ids=tokens).logits.sum(), trained, allow_unused=True
            )
    except (*NOT_BUILT, AssertionError, IndexError):
        return True
    finally:
        model.train(was_training)
    return any(gradient is None for gradient in gradients)


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
    """``scaler`` is disabled, and then has no effect, unless the format is fp16."""

    lower_type: torch.dtype | None
    device_type: str
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
