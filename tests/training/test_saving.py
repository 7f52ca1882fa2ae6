"""A saved model is what transformers reads, in files of bounded size; one tensor is in memory at a
time.
"""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, GPT2Config

from traindyno.core.suite.choices import Task
from training.memory.tracker import BLOCK_BYTES, MemoryTracker
from training.models.model import empty_model
from training.models.tensor_file import METADATA, TensorFile
from training.run.saving import add_best, keep_best, save_model

CONFIG: dict[str, Any] = {
    "vocab_size": 96,
    "n_embd": 32,
    "n_layer": 3,
    "n_head": 4,
    "n_positions": 16,
}


def made_one_by_one(saved: dict[str, torch.Tensor]) -> Iterator[tuple[str, torch.Tensor]]:
    """Each is made when it is asked for, as a strategy gathers it."""
    for name, tensor in saved.items():
        yield name, tensor.clone()


def trained_values() -> dict[str, torch.Tensor]:
    model = AutoModelForCausalLM.from_config(GPT2Config(**CONFIG))
    return {name: tensor.clone() for name, tensor in model.state_dict().items()}


@pytest.mark.parametrize(("shard_bytes", "files"), [(1 << 30, 1), (60_000, 3)])
def test_tensors_arriving_one_by_one_are_read_back_as_the_model(
    tmp_path: Path, shard_bytes: int, files: int
) -> None:
    saved = trained_values()
    fresh = empty_model(Task.CAUSAL_LM, GPT2Config(**CONFIG))
    save_model(made_one_by_one(saved), fresh, None, tmp_path, shard_bytes=shard_bytes)
    names = sorted(path.name for path in tmp_path.glob("*safetensors*") if path.suffix != ".json")
    assert len(names) >= files
    assert (len(names) > 1) == (files > 1)
    if files > 1:
        index = json.loads((tmp_path / "model.safetensors.index.json").read_text())
        assert sorted(set(index["weight_map"].values())) == names
        assert "lm_head.weight" not in index["weight_map"]  # tied: it is written once
        for name, file in index["weight_map"].items():
            assert torch.equal(load_file(tmp_path / file)[name], saved[name])
    read = AutoModelForCausalLM.from_pretrained(tmp_path)
    for name, tensor in read.state_dict().items():
        assert torch.equal(tensor, saved[name]), name
    assert json.loads((tmp_path / "config.json").read_text())["architectures"] == [
        "GPT2LMHeadModel"
    ]


def test_one_tensor_is_held_at_a_time(tmp_path: Path) -> None:
    saved = trained_values()
    largest = max(tensor.numel() * tensor.element_size() for tensor in saved.values())
    fresh = empty_model(Task.CAUSAL_LM, GPT2Config(**CONFIG))
    with MemoryTracker() as tracker:
        save_model(made_one_by_one(saved), fresh, None, tmp_path)
    assert 0 < max(tracker.levels) <= largest + BLOCK_BYTES


def test_a_file_equals_one_by_safetensors(tmp_path: Path) -> None:
    tensors = {
        "b.weight": torch.randn(3, 5),
        "a.weight": torch.randn(4, 2).t(),  # not contiguous
        "flags": torch.tensor([True, False, True]),
        "steps": torch.tensor(7),
        "half": torch.randn(3).bfloat16(),
        "ä": torch.empty(0, 4),
    }
    file = TensorFile(
        tmp_path / "ours", {name: tensor.to("meta") for name, tensor in tensors.items()}
    )
    for name, tensor in reversed(tensors.items()):
        file.write(name, tensor)
    save_file(
        {name: tensor.contiguous() for name, tensor in tensors.items()},
        tmp_path / "theirs",
        metadata=METADATA,
    )
    assert (tmp_path / "ours").read_bytes() == (tmp_path / "theirs").read_bytes()


def test_a_tensor_with_gaps_is_copied_in_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("training.models.tensor_file.PART_BYTES", 4096)
    tensor = torch.randn(64, 1024).t()
    file = TensorFile(tmp_path / "ours", {"it": tensor})
    with MemoryTracker() as tracker:
        file.write("it", tensor)
    copies = max(tracker.levels) - tensor.untyped_storage().nbytes()
    assert 0 < copies <= 2 * 4096
    assert torch.equal(load_file(tmp_path / "ours")["it"], tensor)


def test_a_model_with_a_missing_or_misshapen_tensor_is_not_saved(tmp_path: Path) -> None:
    saved = trained_values()
    fresh = empty_model(Task.CAUSAL_LM, GPT2Config(**CONFIG))
    partly = {name: tensor for name, tensor in saved.items() if name != "transformer.wpe.weight"}
    with pytest.raises(ValueError, match=r"no value was given for transformer\.wpe\.weight"):
        save_model(made_one_by_one(partly), fresh, None, tmp_path)
    other = saved | {"transformer.wpe.weight": torch.zeros(8, 32)}
    with pytest.raises(
        ValueError, match=r"wpe.weight is torch.float32 of shape \(8, 32\); expected .* \(16, 32\)"
    ):
        save_model(made_one_by_one(other), fresh, None, tmp_path)
    assert not list(tmp_path.glob("*.safetensors")), "a draft is no model"


def test_another_hosts_upload_does_not_replace_the_best_model(tmp_path: Path) -> None:
    """After a resume each host has the folders of the attempts before."""

    def evaluated(checkpoints: Path, step: int, loss: float) -> None:
        def save(folder: Path) -> None:
            folder.mkdir()
            (folder / "model.safetensors").write_text(str(step))

        keep_best(checkpoints, step, {"loss": loss}, save)

    first_host = tmp_path / "first"
    other_host = tmp_path / "other"
    first_host.mkdir()
    evaluated(first_host, 4, 3.0)
    shutil.copytree(first_host, other_host)
    evaluated(first_host, 8, 2.0)
    evaluated(first_host, 12, 2.5)
    assert [path.name for path in first_host.iterdir()] == ["best-8"]
    shutil.copytree(other_host, first_host, dirs_exist_ok=True)
    add_best(first_host, tmp_path / "model", last_step=12)
    assert (tmp_path / "model/best/model.safetensors").read_text() == "8"
