"""Writes a trained model as transformers reads it, tensor by tensor: no process holds the whole
model for it.

Tensors have any shape [...].
"""

import json
import math
import shutil
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase
from transformers.utils import GENERATION_CONFIG_NAME

from training.models.tensor_file import TensorFile, byte_count
from training.process.process_group import decided_by_first_rank, read_topology
from training.strategies.whole_model import each_once

SHARD_BYTES = 1 << 28
WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"
DRAFT = ".draft"
BEST = "best.json"
BEST_FOLDER = "best"


def save_model(
    tensors: Iterable[tuple[str, torch.Tensor]],
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase | None,
    folder: Path,
    *,
    generation_config: Path | None = None,
    shard_bytes: int = SHARD_BYTES,
) -> None:
    """Writes a model's folder. Tied weights are written once.

    Args:
        tensors: The values, which are written one by one, in the model's types; none is kept.
        model: A new model on the meta device, because the trained one may be sharded, wrapped or
            rewritten by its strategy.
        tokenizer: The tokenizer to save with it, if there is one.
        folder: The folder, which is made if it is missing.
        generation_config: A file that is kept as it is.
        shard_bytes: The most that a file holds, if it has more than one tensor.

    Raises:
        ValueError: A tensor of the model is missing, or has another shape.
    """
    folder.mkdir(parents=True, exist_ok=True)
    model.tie_weights()
    _write_shards(tensors, each_once(model.state_dict(keep_vars=True)), folder, shard_bytes)
    model.config.architectures = [type(model).__name__]
    model.config.save_pretrained(folder)
    if generation_config is not None:
        shutil.copyfile(generation_config, folder / GENERATION_CONFIG_NAME)
    elif model.can_generate() and model.generation_config is not None:
        model.generation_config.save_pretrained(folder)
    if tokenizer is not None:
        tokenizer.save_pretrained(folder)


def keep_best(
    checkpoints: Path, step: int, metrics: Mapping[str, float], save: Callable[[Path], None]
) -> None:
    """Save the model into a folder of ``checkpoints`` if its loss is the lowest so far.

    All ranks call it after each evaluation.

    ``BEST`` is written last and removed first, so that a folder with it is whole. The next attempt
    finds it on each host, and another host may upload what it found once more: the step in its name
    keeps it apart from what the first host writes.
    """
    kept = find_best(checkpoints)
    lowest = math.inf if kept is None else _read_best(kept)["metrics"]["loss"]
    if not decided_by_first_rank(metrics["loss"] < lowest):
        return
    folder = checkpoints / f"{BEST_FOLDER}-{step}"
    save(folder)
    if read_topology().is_first:
        (folder / BEST).write_text(json.dumps({"step": step, "metrics": dict(metrics)}))
        if kept is not None and kept != folder:
            (kept / BEST).unlink()
            shutil.rmtree(kept)


def find_best(checkpoints: Path) -> Path | None:
    """The folder with the lowest loss."""
    whole = [path.parent for path in checkpoints.glob(f"{BEST_FOLDER}-*/{BEST}")]
    return min(whole, key=lambda folder: _read_best(folder)["metrics"]["loss"], default=None)


def _read_best(folder: Path) -> Any:
    return json.loads((folder / BEST).read_text())


def add_best(checkpoints: Path, folder: Path, last_step: int) -> None:
    """Put the model of the best evaluation beside the last one, unless it is the same."""
    kept = find_best(checkpoints)
    if kept is not None and _read_best(kept)["step"] != last_step:
        shutil.copytree(kept, folder / BEST_FOLDER, dirs_exist_ok=True)


def _write_shards(
    tensors: Iterable[tuple[str, torch.Tensor]],
    expected: Mapping[str, torch.Tensor],
    folder: Path,
    shard_bytes: int,
) -> None:
    """Files get their final names when all of them are complete."""
    shards = _divide(expected, shard_bytes)
    count = len(shards)
    numbered = [f"model-{number:05d}-of-{count:05d}.safetensors" for number in range(1, count + 1)]
    names = [WEIGHTS] if count == 1 else numbered
    files = [
        TensorFile(folder / (name + DRAFT), shard)
        for name, shard in zip(names, shards, strict=True)
    ]
    file_of = {name: file for file, shard in zip(files, shards, strict=True) for name in shard}
    missing = set(expected)
    for name, tensor in tensors:
        if name in file_of:
            file_of[name].write(name, tensor.to(expected[name].dtype))
            missing.discard(name)
        del tensor  # otherwise the loop's variable holds this tensor while the next one is made
    if missing:
        raise ValueError(
            f"no value was given for {', '.join(sorted(missing)[:3])}; expected one for every "
            "tensor of the model"
        )
    for file in files:
        file.path.replace(folder / file.path.name.removesuffix(DRAFT))
    if len(shards) > 1:
        weight_map = {name: file.path.name.removesuffix(DRAFT) for name, file in file_of.items()}
        index = {
            "metadata": {"total_size": sum(map(byte_count, expected.values()))},
            "weight_map": weight_map,
        }
        (folder / INDEX).write_text(json.dumps(index, indent=2, sort_keys=True))


def _divide(
    expected: Mapping[str, torch.Tensor], shard_bytes: int
) -> list[dict[str, torch.Tensor]]:
    shards: list[dict[str, torch.Tensor]] = [{}]
    size = 0
    for name, tensor in expected.items():
        if shards[-1] and size + byte_count(tensor) > shard_bytes:
            shards.append({})
            size = 0
        shards[-1][name] = tensor
        size += byte_count(tensor)
    return shards
