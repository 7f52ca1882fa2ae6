"""A saved model is what transformers reads, in files of bounded size."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, GPT2Config

from traindyno.core.suite.choices import Task
from training.model import empty_model
from training.saving import save_model

CONFIG: dict[str, Any] = {"vocab_size": 96, "n_embd": 32, "n_layer": 3, "n_head": 4, "n_positions": 16}


@pytest.mark.parametrize(("shard_bytes", "files"), [(1 << 30, 1), (60_000, 3)])
def test_tensors_that_come_one_by_one_are_read_back_as_the_model(tmp_path: Path, shard_bytes: int, files: int) -> None:
    model = AutoModelForCausalLM.from_config(GPT2Config(**CONFIG))
    saved = {name: tensor.clone() for name, tensor in model.state_dict().items()}

    def one_by_one() -> Iterator[tuple[str, torch.Tensor]]:
        yield from saved.items()

    fresh = empty_model(Task.CAUSAL_LM, GPT2Config(**CONFIG))
    save_model(one_by_one(), fresh, None, tmp_path, shard_bytes=shard_bytes)
    found = sorted(path.name for path in tmp_path.glob("*.safetensors"))
    assert len(found) >= files
    assert (len(found) > 1) == (files > 1)
    if files > 1:
        index = json.loads((tmp_path / "model.safetensors.index.json").read_text())
        assert sorted(set(index["weight_map"].values())) == found
        assert "lm_head.weight" not in index["weight_map"]  # tied: it is written once
    read = AutoModelForCausalLM.from_pretrained(tmp_path)
    for name, tensor in read.state_dict().items():
        assert torch.equal(tensor, saved[name]), name
    assert json.loads((tmp_path / "config.json").read_text())["architectures"] == ["GPT2LMHeadModel"]
