"""The weights of a saved model, by the model's own names: the place of each, and the weights to initialise."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import torch
from transformers import PreTrainedModel

from training.models.blueprint import IsWanted, NamedValues
from training.models.initial_values import seeded_values
from training.models.saved_files import SavedTensor, find_files, read_shapes

Saved = Mapping[str, tuple[Path, str]]


def find_saved(skeleton: PreTrainedModel, model_path: str, revision: str | None) -> Saved | None:
    """The file and the stored name of each of the model's tensors that is saved. Only a new head may be missing. None
    if transformers must translate the saved files: another file format, other names or shapes, or two values of tied
    weights.
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
    """The names of each tensor: several where it is tied."""
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
