"""The files of a saved model, safetensors or PyTorch's own, read tensor by tensor and in slices."""

import zipfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from transformers.utils import SAFE_WEIGHTS_INDEX_NAME, SAFE_WEIGHTS_NAME, WEIGHTS_INDEX_NAME, WEIGHTS_NAME
from transformers.utils.hub import cached_file, get_checkpoint_shard_files

SAFETENSORS = ".safetensors"
Shape = tuple[int, ...]


class SavedTensor:
    """The file is opened again for each part, so that no file stays mapped into memory."""

    def __init__(self, file: Path, name: str, dtype: torch.dtype) -> None:
        self._file, self._name, self._dtype = file, name, dtype

    def __getitem__(self, index: Any) -> torch.Tensor:
        if self._file.suffix == SAFETENSORS:
            with safe_open(self._file, framework="pt") as opened:
                read = opened.get_tensor(self._name) if index is ... else opened.get_slice(self._name)[index]
        else:
            read = _mapped(self._file)[self._name][index].to(self._dtype, copy=True)
        return read.to(self._dtype)  # type: ignore[no-any-return]


def find_files(model_path: str, revision: str | None) -> list[Path]:
    """The files that transformers would read; empty if their format can't be read in slices."""
    find = partial(cached_file, model_path, revision=revision, _raise_exceptions_for_missing_entries=False)
    for whole, index in ((SAFE_WEIGHTS_NAME, SAFE_WEIGHTS_INDEX_NAME), (WEIGHTS_NAME, WEIGHTS_INDEX_NAME)):
        if (found := find(whole)) is not None:
            files = [Path(found)]
        elif (found := find(index)) is not None:
            shards, _ = get_checkpoint_shard_files(model_path, found, revision=revision)  # type: ignore[no-untyped-call]
            files = [Path(shard) for shard in shards]
        else:
            continue
        return files if all(map(_can_be_mapped, files)) else []
    return []


def read_shapes(file: Path) -> Mapping[str, Shape]:
    """Shapes by name; of a tensor with several names, the first in a PyTorch file, which repeats tied weights."""
    if file.suffix == SAFETENSORS:
        with safe_open(file, framework="pt") as opened:
            return {name: tuple(opened.get_slice(name).get_shape()) for name in opened.keys()}  # noqa: SIM118
    named = _mapped(file)
    first_names = {_identity(tensor): name for name, tensor in reversed(named.items())}
    return {name: tuple(tensor.shape) for name, tensor in named.items() if first_names[_identity(tensor)] == name}


def _mapped(file: Path) -> dict[str, torch.Tensor]:
    """Values are read from the file when they are used."""
    read = torch.load(file, map_location="cpu", mmap=True, weights_only=True)
    return {name: tensor for name, tensor in read.items() if isinstance(tensor, torch.Tensor)}


def _can_be_mapped(file: Path) -> bool:
    """PyTorch's files are zip archives since version 1.6."""
    return file.suffix == SAFETENSORS or zipfile.is_zipfile(file)


def _identity(tensor: torch.Tensor) -> tuple[Any, ...]:
    return tensor.data_ptr(), tensor.shape, tensor.stride()
