"""Weights of 4 bits, by bitsandbytes, which is imported where a model has some.

Each weight is quantised when its value is read: no process holds the model in a wider type. Tensors
have any shape [...].
"""

import sys
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn
from transformers.utils import import_utils

from training.errors import MissingFromImage

PACKAGE = "bitsandbytes"


def import_bitsandbytes() -> Any:
    """Shows the package again, which ``training`` hides, and what has asked for it before."""
    if sys.modules.get(PACKAGE, ...) is None:
        del sys.modules[PACKAGE]
    try:
        import bitsandbytes  # noqa: PLC0415  (seconds, and 45 MiB)
    except ImportError as error:
        raise MissingFromImage(
            f"base_weights nf4 need bitsandbytes, which is not installed here ({error}); expected "
            "an image of the lab, or base_weights bf16"
        ) from error
    from peft import import_utils as of_peft  # noqa: PLC0415

    for lookup in (
        of_peft.is_bnb_available,
        of_peft.is_bnb_4bit_available,
        import_utils.is_bitsandbytes_available,
        import_utils._is_package_available,
    ):
        getattr(lookup, "cache_clear", lambda: None)()
    return bitsandbytes


def is_of_4_bits(tensor: torch.Tensor) -> bool:
    return hasattr(tensor, "quant_state")


def empty_of_4_bits(parameter: Any, device: torch.device) -> nn.Parameter:
    """Makes a parameter of this kind without an element, to which ``quantise`` gives its values."""
    empty: nn.Parameter = import_bitsandbytes().nn.Params4bit(
        torch.empty(0, dtype=parameter.dtype, device=device),
        requires_grad=False,
        blocksize=parameter.blocksize,
        compress_statistics=parameter.compress_statistics,
        quant_type=parameter.quant_type,
        quant_storage=parameter.quant_storage,
        module=parameter.module,
    )
    return empty


def quantise(value: torch.Tensor, target: Any) -> None:
    """Takes a whole ``value`` [...], in the type that the base would be held in."""
    target.data = value.to(device=target.device, dtype=target.dtype)
    import_bitsandbytes().nn.Params4bit._quantize(target, target.device)  # of a fake one too


def whole_values(model: nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    """The model's tensors [...] by name. Tensors of 4 bits are dequantised, one at a time."""
    named = model.state_dict(keep_vars=True)
    quantised = {name for name, tensor in named.items() if is_of_4_bits(tensor)}
    for name, tensor in named.items():
        if name in quantised:
            functional: Any = import_bitsandbytes().functional
            weight: Any = tensor
            yield name, functional.dequantize_4bit(weight.data, weight.quant_state)
        elif name.partition(".weight.")[0] + ".weight" not in quantised:
            yield name, tensor.detach()
