"""The weights of a saved model by the model's own names, read in slices.

The files are safetensors or PyTorch's own. Weights that they lack are initialised. Tensors have any
shape [...].
"""

import zipfile
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from transformers import PreTrainedModel
from transformers.modeling_utils import str_to_torch_dtype
from transformers.utils import (
    SAFE_WEIGHTS_INDEX_NAME,
    SAFE_WEIGHTS_NAME,
    WEIGHTS_INDEX_NAME,
    WEIGHTS_NAME,
)
from transformers.utils.hub import cached_file, get_checkpoint_shard_files

from training.models.blueprint import IsWanted, NamedValues, seeded_values

SAFETENSORS = ".safetensors"
Saved = Mapping[str, tuple[Path, str]]


def find_saved(
    skeleton: PreTrainedModel, model_path: str, revision: str | None, *, renews_head: bool = False
) -> Saved | None:
    """Returns file and stored name of each of the model's tensors that is saved.

    Only a head may be missing or, with ``renews_head``, have other shapes.

    None if transformers must translate the saved files: they have another format, other names or
    shapes, or two values of tied weights.
    """
    files = find_files(model_path, revision)
    if not all(map(_can_be_mapped, files)):
        return None
    tensors_of = {file: read_header(file) for file in files}
    stored = {name: file for file, of_file in tensors_of.items() for name in of_file}
    saved: dict[str, tuple[Path, str]] = {}
    missing: list[str] = []
    tensors = skeleton.state_dict(keep_vars=True)
    prefix = f"{skeleton.base_model_prefix}."  # a model without a head is saved without it
    names: dict[int, list[str]] = {}  # of each tensor: a tied one has several
    for name, tensor in tensors.items():
        names.setdefault(id(tensor), []).append(name)
    for first, *others in names.values():
        aliases = (
            alias
            for name in (first, *others)
            for alias in dict.fromkeys((name, name.removeprefix(prefix)))
        )
        present = [alias for alias in aliases if alias in stored]
        if len(present) > 1:
            return None
        if present:
            saved[first] = stored[present[0]], present[0]
        else:
            missing.append(first)
    is_left = len(saved) < len(stored)
    for name in list(saved):
        file, alias = saved[name]
        if tensors_of[file][alias].shape != tensors[name].shape:
            if is_of_base(name, skeleton) or not renews_head:
                return None
            del saved[name]  # a head for another number of labels: a new one is initialised
    if missing and (is_left or any(is_of_base(name, skeleton) for name in missing)):
        return None
    return saved or None


def saved_values(
    skeleton: PreTrainedModel, saved: Saved, seed: int, is_wanted: IsWanted
) -> NamedValues:
    """Weights that are not saved, such as a new head, are initialised."""
    for name, (file, alias) in saved.items():
        if is_wanted(name):
            yield name, SavedTensor(file, alias, torch.float32)
    yield from seeded_values(skeleton, seed, lambda name: name not in saved and is_wanted(name))


def is_of_base(name: str, skeleton: PreTrainedModel) -> bool:
    return name.startswith(f"{skeleton.base_model_prefix}.")


class SavedTensor:
    """The file is opened again for each part, so that no file stays mapped into memory."""

    def __init__(self, file: Path, name: str, dtype: torch.dtype) -> None:
        self._file = file
        self._name = name
        self._dtype = dtype

    def __getitem__(self, index: Any) -> torch.Tensor:
        if self._file.suffix == SAFETENSORS:
            with safe_open(self._file, framework="pt") as opened:
                read = (
                    opened.get_tensor(self._name)
                    if index is ...
                    else opened.get_slice(self._name)[index]
                )
        else:
            read = _mapped(self._file)[self._name][index].to(self._dtype, copy=True)
        return read.to(self._dtype)  # type: ignore[no-any-return]


def find_files(model_path: str, revision: str | None) -> list[Path]:
    """The files that transformers would read; none if it finds none."""
    find = partial(
        cached_file, model_path, revision=revision, _raise_exceptions_for_missing_entries=False
    )
    for whole, index in (
        (SAFE_WEIGHTS_NAME, SAFE_WEIGHTS_INDEX_NAME),
        (WEIGHTS_NAME, WEIGHTS_INDEX_NAME),
    ):
        file = find(whole)
        if file is not None:
            return [Path(file)]
        index_file = find(index)
        if index_file is not None:
            shards, _ = get_checkpoint_shard_files(model_path, index_file, revision=revision)  # type: ignore[no-untyped-call]
            return [Path(shard) for shard in shards]
    return []


def read_header(file: Path) -> Mapping[str, torch.Tensor]:
    """Tensors by name, with shapes and types and without values.

    A PyTorch file repeats tied weights: of a tensor with several names the first one is given.
    """
    if file.suffix == SAFETENSORS:
        with safe_open(file, framework="pt") as opened:
            slices = {name: opened.get_slice(name) for name in opened.keys()}  # noqa: SIM118
            return {
                name: _without_values(part.get_shape(), part.get_dtype())
                for name, part in slices.items()
            }
    named = _mapped(file) if _can_be_mapped(file) else _read(file, map_location="meta")
    first_names = {_identity(tensor): name for name, tensor in reversed(named.items())}
    return {
        name: tensor.to("meta")
        for name, tensor in named.items()
        if first_names[_identity(tensor)] == name
    }


def _without_values(shape: Sequence[int], type_name: str) -> torch.Tensor:
    """Returns a tensor of ``shape`` [...]; types that PyTorch lacks are bytes."""
    return torch.empty(shape, dtype=str_to_torch_dtype.get(type_name, torch.uint8), device="meta")


def _mapped(file: Path) -> dict[str, torch.Tensor]:
    """Values are read from the file when they are used."""
    return _read(file, map_location="cpu", mmap=True)


def _read(file: Path, **options: Any) -> dict[str, torch.Tensor]:
    """No code of a pickled file runs."""
    read = torch.load(file, weights_only=True, **options)
    return {name: tensor for name, tensor in read.items() if isinstance(tensor, torch.Tensor)}


def _can_be_mapped(file: Path) -> bool:
    """PyTorch's files are zip archives since version 1.6."""
    return file.suffix == SAFETENSORS or zipfile.is_zipfile(file)


def _identity(tensor: torch.Tensor) -> tuple[Any, ...]:
    return tensor.data_ptr(), tensor.shape, tensor.stride()
