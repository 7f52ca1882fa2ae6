"""The weights of a saved model, read from safetensors files tensor by tensor, and each only in part where it is cut."""

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from transformers import PreTrainedModel
from transformers.utils import SAFE_WEIGHTS_INDEX_NAME, SAFE_WEIGHTS_NAME
from transformers.utils.hub import cached_file, get_checkpoint_shard_files

from training.blueprint import IsWanted, NamedValues
from training.initial_values import seeded_values


class SavedTensor:
    """Opened anew for each part, so that no file stays mapped into memory."""

    def __init__(self, file: Path, name: str, dtype: torch.dtype) -> None:
        self._file, self._name, self._dtype = file, name, dtype

    def __getitem__(self, index: Any) -> torch.Tensor:
        with safe_open(self._file, framework="pt") as opened:
            read = opened.get_tensor(self._name) if index is ... else opened.get_slice(self._name)[index]
            return read.to(self._dtype)  # type: ignore[no-any-return]


Saved = Mapping[str, tuple[Path, str]]


def find_saved(skeleton: PreTrainedModel, model_path: str, revision: str | None) -> Saved | None:
    """The file and the stored name of each of the model's tensors that is saved. Only a new head may be missing.

    None where transformers has to translate what is saved: another file format, other names or shapes, or both of two
    tied weights.
    """
    stored = {name: file for file in _files(model_path, revision) for name in _names(file)}
    found: dict[str, tuple[Path, str]] = {}
    missing: list[str] = []
    for first, *others in _aliases(skeleton):
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
    return found if found and _have_shapes(skeleton, found) else None


def saved_values(skeleton: PreTrainedModel, saved: Saved, seed: int, is_wanted: IsWanted) -> NamedValues:
    """What is not saved, such as a new head, is initialised."""
    for name, (file, alias) in saved.items():
        if is_wanted(name):
            yield name, SavedTensor(file, alias, torch.float32)
    yield from seeded_values(skeleton, seed, lambda name: name not in saved and is_wanted(name))


def _files(model_path: str, revision: str | None) -> list[Path]:
    find = partial(cached_file, model_path, revision=revision, _raise_exceptions_for_missing_entries=False)
    whole, index = find(SAFE_WEIGHTS_NAME), find(SAFE_WEIGHTS_INDEX_NAME)
    if whole is not None:
        return [Path(whole)]
    if index is None:
        return []
    files, _ = get_checkpoint_shard_files(model_path, index, revision=revision)  # type: ignore[no-untyped-call]
    return [Path(file) for file in files]


def _names(file: Path) -> list[str]:
    with safe_open(file, framework="pt") as opened:
        return list(opened.keys())


def _aliases(skeleton: PreTrainedModel) -> list[list[str]]:
    """The names of each tensor: several where it is tied."""
    names: dict[int, list[str]] = {}
    for name, tensor in skeleton.state_dict(keep_vars=True).items():
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


def _have_shapes(skeleton: PreTrainedModel, found: Saved) -> bool:
    shapes = {name: tensor.shape for name, tensor in skeleton.state_dict(keep_vars=True).items()}
    for name, (file, alias) in found.items():
        with safe_open(file, framework="pt") as opened:
            if tuple(opened.get_slice(alias).get_shape()) != tuple(shapes[name]):
                return False
    return True
