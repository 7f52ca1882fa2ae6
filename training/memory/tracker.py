"""Counts the bytes of every live storage while PyTorch runs, on fake or real tensors.

Tensors have any shape [...].
"""

import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import wraps
from types import TracebackType
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode, is_traceable_wrapper_subclass
from torch.utils._pytree import tree_iter, tree_map

from training.models.blueprint import replaced

# Autocast computes these in fp32 on CUDA (AT_FORALL_FP32 and AT_FORALL_FP32_SET_OPT_DTYPE of
# PyTorch's autocast_mode.h) and in the type of their input on a CPU. Losses and image operations
# are left out: no model of ours has one inside.
IN_FP32 = (
    "acos",
    "asin",
    "cosh",
    "erfinv",
    "exp",
    "expm1",
    "log",
    "log10",
    "log2",
    "log1p",
    "reciprocal",
    "rsqrt",
    "sinh",
    "tan",
    "pow.Tensor_Scalar",
    "pow.Tensor_Tensor",
    "pow.Scalar",
    "softplus",
    "logsumexp",
    "layer_norm",
    "native_layer_norm",
    "group_norm",
    "cosine_similarity",
    "softmax.int",
    "log_softmax.int",
    "cumsum",
    "sum",
    "sum.dim_IntList",
    "linalg_vector_norm",
)
# PyTorch's CUDA allocator allocates multiples of this.
BLOCK_BYTES = 512


@contextmanager
def as_on_cuda() -> Iterator[None]:
    """The tensors stay a CPU's, fake or real: PyTorch built for CPUs does no backward pass on fake
    CUDA tensors.
    """
    with ExitStack() as stack:
        library = stack.enter_context(torch.library._scoped_library("aten", "IMPL"))
        for name in IN_FP32:
            packet, _, overload = name.partition(".")
            operation = getattr(getattr(torch.ops.aten, packet), overload or "default")
            library.impl(name, _in_fp32(operation), "AutocastCPU")
        stack.enter_context(replaced(functional, "dropout", _dropout(functional.dropout)))
        attend = functional.scaled_dot_product_attention
        stack.enter_context(
            replaced(functional, "scaled_dot_product_attention", _without_dropout(attend))
        )
        yield


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
    """CUDA's kernels repeat the random numbers in the backward pass.

    With dropout, a CPU has no such kernel, and keeps all attention weights.
    """

    @wraps(attend)
    def attended(*args: Any, dropout_p: float = 0.0, **kwargs: Any) -> torch.Tensor:
        return attend(*args, **kwargs)

    return attended


class MemoryTracker(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts bytes while it is entered.

    ``levels`` has the bytes of all storages seen and alive, after each change since they were
    taken. FSDP frees and refills parameters by resizing their storage, which a dispatch mode does
    not intercept: ``resize_`` is wrapped.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.levels = [0]
        self._sizes: dict[int, int] = {}
        self._references: dict[int, weakref.ref[Any]] = {}
        self._resize: Callable[..., Any] = torch.UntypedStorage.resize_

    def __enter__(self) -> "MemoryTracker":
        original = self._resize

        def resize(storage: torch.UntypedStorage, size: int) -> Any:
            result = original(storage, size)
            self._count(storage)
            return result

        torch.UntypedStorage.resize_ = resize  # type: ignore[method-assign, assignment]
        super().__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        torch.UntypedStorage.resize_ = self._resize  # type: ignore[method-assign]
        super().__exit__(kind, error, trace)  # type: ignore[no-untyped-call]

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        self.see(result)
        return result

    def see(self, values: Any) -> None:
        """Count the storages of the tensors in ``values``, each once."""
        for value in tree_iter(values):
            if isinstance(value, torch.Tensor) and value.device.type != "meta":
                for part in _plain(value):
                    self._count(part.untyped_storage())

    def take_levels(self) -> list[int]:
        """The levels since it was called before."""
        levels = self.levels
        self.levels = levels[-1:]
        return levels

    def _count(self, storage: torch.UntypedStorage) -> None:
        key = id(storage)
        if key not in self._references:
            self._references[key] = weakref.ref(storage, lambda _: self._forget(key))
        size = -(-storage.nbytes() // BLOCK_BYTES) * BLOCK_BYTES
        self._add(size - self._sizes.get(key, 0))
        self._sizes[key] = size

    def _forget(self, key: int) -> None:
        del self._references[key]
        self._add(-self._sizes.pop(key))

    def _add(self, size: int) -> None:
        if size:
            self.levels.append(self.levels[-1] + size)


def storage_bytes(tensors: Iterable[torch.Tensor]) -> int:
    """The bytes of the storages behind these tensors, each counted once; of a sharded tensor, this
    process's part.
    """
    storages = {}
    for tensor in tensors:
        for part in _plain(tensor):
            storage = part.untyped_storage()
            storages[id(storage)] = storage
    return sum(-(-storage.nbytes() // BLOCK_BYTES) * BLOCK_BYTES for storage in storages.values())


def _plain(tensor: torch.Tensor) -> Iterable[torch.Tensor]:
    """The tensors with memory behind a subclass, such as a DTensor's part of this process."""
    if isinstance(tensor, FakeTensor) or not is_traceable_wrapper_subclass(tensor):
        return [tensor]
    names, _ = tensor.__tensor_flatten__()
    parts = [getattr(tensor, name) for name in names]
    return [plain for part in parts if isinstance(part, torch.Tensor) for plain in _plain(part)]
