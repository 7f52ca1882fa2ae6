"""The weights of a saved model, by the model's own names: in which file each is, and its values, in slices.

The files are safetensors or PyTorch's own. Weights that they lack are initialised. Tensors have any shape [...].
"""

import zipfile
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from transformers import PreTrainedModel
from transformers.utils import SAFE_WEIGHTS_INDEX_NAME, SAFE_WEIGHTS_NAME, WEIGHTS_INDEX_NAME, WEIGHTS_NAME
from transformers.utils.hub import cached_file, get_checkpoint_shard_files

from training.models.blueprint import IsWanted, NamedValues
from training.models.initial_values import seeded_values

SAFETENSORS = ".safetensors"
Shape = tuple[int, ...]
Saved = Mapping[str, tuple[Path, str]]


def find_saved(skeleton: PreTrainedModel, model_path: str, revision: str | None) -> Saved | None:
    """Returns file and stored name of each of the model's tensors that is saved. Only a new head may be missing.

    None if transformers must translate the saved files: they have another format, other names or shapes, or two values
    of tied weights.
    """
    shapes = {file: read_shapes(file) for file in find_files(model_path, revision)}
    stored = {name: file for file, of_file in shapes.items() for name in of_file}
    found: dict[str, tuple[Path, str]] = {}
    missing: list[str] = []
    tensors = skeleton.state_dict(keep_vars=True)
    for first, *others in _aliases(tensors):
        present = [alias for name in (first, *others) for alias in _as_stored(name, skeleton) if alias in stored]
        if len(present) > 1:
            return None
        if present:
            found[first] = stored[present[0]], present[0]
        else:
            missing.append(first)
    is_left = len(found) < len(stored)
    if missing and (is_left or any(_is_of_base(name, skeleton) for name in missing)):
        return None
    is_alike = all(shapes[file][alias] == tensors[name].shape for name, (file, alias) in found.items())
    return found if found and is_alike else None


def saved_values(skeleton: PreTrainedModel, saved: Saved, seed: int, is_wanted: IsWanted) -> NamedValues:
    """Weights that are not saved, such as a new head, are initialised."""
    for name, (file, alias) in saved.items():
        if is_wanted(name):
            yield name, SavedTensor(file, alias, torch.float32)
    yield from seeded_values(skeleton, seed, lambda name: name not in saved and is_wanted(name))


def _aliases(tensors: Mapping[str, torch.Tensor]) -> list[list[str]]:
    """The names of each tensor. A tied one has several."""
    names: dict[int, list[str]] = {}
    for name, tensor in tensors.items():
        names.setdefault(id(tensor), []).append(name)
    return list(names.values())


def _as_stored(name: str, skeleton: PreTrainedModel) -> Iterator[str]:
    """A model without a head is saved without the prefix of the base model."""
    yield name
    prefix = f"{skeleton.base_model_prefix}."
    if name.startswith(prefix):
        yield name.removeprefix(prefix)


def _is_of_base(name: str, skeleton: PreTrainedModel) -> bool:
    return name.startswith(f"{skeleton.base_model_prefix}.")


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
    """Shapes by name. A PyTorch file repeats tied weights: of a tensor with several names the first one is given."""
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
