"""Whole runs with an adapter as the container does them, from a model to what is served."""

import json
import re
import shutil
from pathlib import Path

import torch
from transformers import AutoConfig, AutoModelForCausalLM

from tests.training.run_documents import MODELS, run_document, run_training
from training import inference

TEMPLATE = "{% for message in messages %}{{ message.role }} {{ message.content }} {% endfor %}"


def test_training_goes_on_from_a_model_to_an_adapter_and_from_there(
    tmp_path: Path, texts: Path
) -> None:
    measurement = {"save_model": True, "evaluate": True}
    folders = [tmp_path / name for name in ("base", "first", "second", "refused")]
    for folder in folders:
        folder.mkdir()
    first, *_ = folders
    assert run_training(first, run_document(measurement=measurement), texts).exit_code == 0
    base = first / "model"
    settings = {"adapter": {"rank": 4, "learning_rate": 0.01}, "strategy": "fsdp"}
    document = run_document(
        workload={"model": {"path": str(base)}, "tokenizer": {"path": str(base)}},
        settings=settings,
        measurement=measurement,
    )
    end = run_training(folders[1], document, texts, processes=2)
    assert end.exit_code == 0, end.output
    (model,) = end.of_kind("model")
    assert 0 < model["trained"] < model["parameters"] / 2
    merged = folders[1] / "model"
    adapter = merged / "adapter"
    config = json.loads((adapter / "adapter_config.json").read_text())
    assert config["base_model_name_or_path"] == str(base)
    served = inference.load(merged, torch.device("cpu"))
    changed = AutoModelForCausalLM.from_pretrained(base).state_dict()
    assert any(
        not torch.equal(changed[name], tensor) for name, tensor in served.model.state_dict().items()
    )
    served.tokenizer.chat_template = TEMPLATE
    request = inference.input_fn('{"messages": [{"role": "user", "content": "a"}]}')
    assert len(inference.predict_fn(request, served)["predictions"]) == 5

    document["workload"]["model"] = {"path": str(adapter)}
    document["settings"] |= {"strategy": "single"}
    end = run_training(folders[2], document, texts)
    assert end.exit_code == 0, end.output
    losses = [step["loss"] for step in end.of_kind("step")]
    assert losses[-1] > 0

    shutil.rmtree(base)
    shutil.copytree(merged, base)
    end = run_training(folders[3], document, texts)
    assert end.exit_code != 0
    assert "was trained beside a base whose files have the digest" in end.output


def test_a_checkpoint_beside_another_base_is_refused_by_name(tmp_path: Path, texts: Path) -> None:
    base = tmp_path / "base"
    sizes = {**MODELS["gpt2"], "vocab_size": 400}
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model(**sizes))
    model.save_pretrained(base)
    document = run_document(
        workload={"model": {"path": str(base)}},
        settings={"adapter": {"rank": 2}},
        measurement={"max_steps": 4, "checkpoint_every_steps": 2},
    )
    environment = {"TRAINDYNO_CHECKPOINT_DIRECTORY": str(tmp_path / "checkpoints")}

    def said() -> str:
        end = run_training(tmp_path, document, texts, environment=environment)
        assert end.exit_code == 0, end.output
        return end.output

    said()
    assert "checkpoint refused" not in said()
    model.transformer.h[0].mlp.c_fc.bias.data.fill_(1.0)
    model.save_pretrained(base)
    assert re.search("of other settings: it has base '[0-9a-f]+', where this run has", said())
