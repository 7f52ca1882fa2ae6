"""Counts the bytes of every live storage while PyTorch runs, on fake tensors and on real ones alike.

Tensors have any shape [...].
"""

import weakref
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._python_dispatch import TorchDispatchMode, is_traceable_wrapper_subclass
from torch.utils._pytree import tree_iter

# PyTorch's CUDA allocator allocates multiples of this.
BLOCK_BYTES = 512


class MemoryTracker(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """``current_bytes`` of all storages seen and alive; ``peak_bytes`` the most since ``reset_peak``.

    FSDP frees and refills parameters by resizing their storage, which a dispatch mode does not intercept: ``resize_``
    is wrapped.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.current_bytes = 0
        self.peak_bytes = 0
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
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        torch.UntypedStorage.resize_ = self._resize  # type: ignore[method-assign]
        super().__exit__(kind, error, trace)  # type: ignore[no-untyped-call]

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
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

    def reset_peak(self) -> None:
        self.peak_bytes = self.current_bytes

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
        self.current_bytes += size
        self.peak_bytes = max(self.peak_bytes, self.current_bytes)


def storage_bytes(tensors: Iterable[torch.Tensor]) -> int:
    """The bytes of the storages behind these tensors, each counted once; of a sharded tensor, this process's part."""
    storages = {
        id(storage): storage for tensor in tensors for part in _plain(tensor) for storage in [part.untyped_storage()]
    }
    return sum(-(-storage.nbytes() // BLOCK_BYTES) * BLOCK_BYTES for storage in storages.values())


def _plain(tensor: torch.Tensor) -> Iterable[torch.Tensor]:
    """The tensors with memory behind a subclass, such as a DTensor's part of this process."""
    if isinstance(tensor, FakeTensor) or not is_traceable_wrapper_subclass(tensor):
        return [tensor]
    names, _ = tensor.__tensor_flatten__()
    parts = [getattr(tensor, name) for name in names]
    return [plain for part in parts if isinstance(part, torch.Tensor) for plain in _plain(part)]
