"""Writes a trained model as transformers reads it, tensor by tensor: no process holds the whole model for it."""

import json
from collections.abc import Iterable
from pathlib import Path

import torch
from safetensors.torch import save_file
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from training.strategies.whole_model import each_once

SHARD_BYTES = 1 << 28
WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"
METADATA = {"format": "pt"}


def save_model(
    tensors: Iterable[tuple[str, torch.Tensor]],
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase | None,
    folder: Path,
    *,
    shard_bytes: int = SHARD_BYTES,
) -> None:
    """``model`` is a fresh one on the meta device: the trained one may be cut, wrapped or rewritten by its strategy.

    ``tensors`` are looked at one by one. A file holds ``shard_bytes`` or one tensor; tied weights are written once.
    """
    folder.mkdir(parents=True, exist_ok=True)
    model.tie_weights()
    names = each_once(model.state_dict(keep_vars=True))
    _write_shards(((name, tensor) for name, tensor in tensors if name in names), folder, shard_bytes)
    model.config.architectures = [type(model).__name__]
    model.config.dtype = torch.float32
    model.config.save_pretrained(folder)
    if model.can_generate() and model.generation_config is not None:
        model.generation_config.save_pretrained(folder)
    if tokenizer is not None:
        tokenizer.save_pretrained(folder)


def _write_shards(tensors: Iterable[tuple[str, torch.Tensor]], folder: Path, shard_bytes: int) -> None:
    shards: list[list[str]] = []
    held: dict[str, torch.Tensor] = {}
    sizes = total = 0
    for name, tensor in tensors:
        size = tensor.numel() * tensor.element_size()
        if held and sizes + size > shard_bytes:
            shards.append(_write(held, folder, len(shards)))
            held, sizes = {}, 0
        held[name] = tensor.contiguous()
        sizes, total = sizes + size, total + size
    shards.append(_write(held, folder, len(shards)))
    _name_shards(shards, folder, total)


def _write(held: dict[str, torch.Tensor], folder: Path, number: int) -> list[str]:
    save_file(held, _draft(folder, number), metadata=METADATA)
    return list(held)


def _name_shards(shards: list[list[str]], folder: Path, total_bytes: int) -> None:
    """A file's name has the number of files, which is known at the end."""
    if len(shards) == 1:
        _draft(folder, 0).replace(folder / WEIGHTS)
        return
    weight_map: dict[str, str] = {}
    for number, names in enumerate(shards):
        file = f"model-{number + 1:05d}-of-{len(shards):05d}.safetensors"
        _draft(folder, number).replace(folder / file)
        weight_map |= dict.fromkeys(names, file)
    index = {"metadata": {"total_size": total_bytes}, "weight_map": weight_map}
    (folder / INDEX).write_text(json.dumps(index, indent=2, sort_keys=True))


def _draft(folder: Path, number: int) -> Path:
    return folder / f"{WEIGHTS}.{number}.draft"
