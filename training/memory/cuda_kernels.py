"""Lets a CPU compute with a CUDA device's needs of memory: other types under autocast, and other dropout.

Tensors have any shape [...].
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import wraps
from typing import Any

import torch
from torch.nn import functional
from torch.utils._pytree import tree_map

from training.models.blueprint import replaced

# Autocast computes these in fp32 on CUDA (AT_FORALL_FP32 and AT_FORALL_FP32_SET_OPT_DTYPE of PyTorch's autocast_mode.h)
# and in the type of their input on a CPU. Losses and image operations are left out: no model of ours has one inside.
IN_FP32 = (
    *("acos", "asin", "cosh", "erfinv", "exp", "expm1", "log", "log10", "log2", "log1p", "reciprocal", "rsqrt", "sinh"),
    *("tan", "pow.Tensor_Scalar", "pow.Tensor_Tensor", "pow.Scalar", "softplus", "logsumexp"),
    *("layer_norm", "native_layer_norm", "group_norm", "cosine_similarity"),
    *("softmax.int", "log_softmax.int", "cumsum", "sum", "sum.dim_IntList", "linalg_vector_norm"),
)


@contextmanager
def as_on_cuda() -> Iterator[None]:
    """The tensors stay a CPU's, fake or real: PyTorch built for CPUs does no backward pass on fake CUDA tensors."""
    with ExitStack() as stack:
        library = stack.enter_context(torch.library._scoped_library("aten", "IMPL"))
        for name in IN_FP32:
            library.impl(name, _in_fp32(_operation(name)), "AutocastCPU")
        stack.enter_context(replaced(functional, "dropout", _dropout(functional.dropout)))
        attend = functional.scaled_dot_product_attention
        stack.enter_context(replaced(functional, "scaled_dot_product_attention", _without_dropout(attend)))
        yield


def _operation(name: str) -> Callable[..., Any]:
    packet, _, overload = name.partition(".")
    operation: Callable[..., Any] = getattr(getattr(torch.ops.aten, packet), overload or "default")
    return operation


def _in_fp32(operation: Callable[..., Any]) -> Callable[..., Any]:
    def called(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = tree_map(_widened, (args, kwargs))
        with torch.autocast("cpu", enabled=False):
            return operation(*args, **kwargs)

    return called


def _widened(value: Any) -> Any:
    is_lower = isinstance(value, torch.Tensor) and value.dtype in (torch.bfloat16, torch.float16)
    return value.float() if is_lower else value


def _dropout(on_cpu: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """CUDA keeps a mask of one byte per value; a CPU keeps a factor of the input's type."""

    @wraps(on_cpu)
    def dropout(
        input: torch.Tensor,  # its name in PyTorch
        p: float = 0.5,
        training: bool = True,
        inplace: bool = False,
    ) -> torch.Tensor:
        if not training or p in (0, 1) or inplace:
            return on_cpu(input, p, training, inplace)
        return torch.native_dropout(input, p, True)[0]

    return dropout


def _without_dropout(attend: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """CUDA's kernels repeat the random numbers in the backward pass. With dropout, a CPU has no such kernel, and keeps
    all attention weights.
    """

    @wraps(attend)
    def attended(*args: Any, dropout_p: float = 0.0, **kwargs: Any) -> torch.Tensor:
        return attend(*args, **kwargs)

    return attended
