"""Operations on gradients of any shape [...].

They are clipped by their norm, averaged over replicas where no wrapper does it, and measured in
parts.
"""

from collections.abc import Iterable

import torch
from torch import distributed, nn
from torch._utils import _unflatten_dense_tensors
from torch.distributed import ProcessGroup
from torch.distributed.tensor import DTensor
from torch.optim import Optimizer
from transformers import PreTrainedModel

from training.models.config_numbers import NOT_BUILT, count_in, text_of

LEAST_NORM = 1e-6
PROBE_TOKENS = 8


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
