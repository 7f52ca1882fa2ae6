"""A saved model generates as the stored one was meant to: its configuration, its end tokens and its
types are what they were.
"""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM

from tests.training.run_documents import run_document, run_training, write_texts
from tests.training.test_text_rows import WORDS, tokenizer_of
from traindyno.core.run.settings import Settings
from traindyno.core.run.workload import Model, Tokenizer, Workload
from traindyno.core.suite.choices import SaveDtype, Task
from training.models.model import build_model
from training.models.saved_form import saved_form
from training.run.saving import save_model

ENDS = [2, 3, 4]
SAMPLING = {"do_sample": False, "temperature": 0.9, "eos_token_id": ENDS, "pad_token_id": 0}


def stored_model(folder: Path, **values: Any) -> Path:
    """A bf16 model with three end tokens, and a generation_config.json that transformers refuses to
    write again.
    """
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=64,
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        max_position_embeddings=64,
        bos_token_id=1,
        eos_token_id=ENDS,
        pad_token_id=None,
        **values,
    )
    model: Any = LlamaForCausalLM(config)
    model.to(torch.bfloat16).save_pretrained(folder)
    (folder / "generation_config.json").write_text(json.dumps(SAMPLING))
    tokenizer_of("<s> $A").save_pretrained(folder)
    return folder


def saved_again(
    stored: Path, folder: Path, save_dtype: SaveDtype = SaveDtype.CHECKPOINT, **workload: Any
) -> Path:
    """What a job that does no step saves of it; it would train with dropout."""
    asked = Workload(
        task=Task.CAUSAL_LM,
        examples=9,
        sequence_length=16,
        model=Model(path="s3://bucket/model"),
        **workload,
    )
    tokenizer = tokenizer_of("<s> $A")
    settings = Settings(instance="local.cpu", dropout=0.3)
    blueprint = build_model(asked, settings, tokenizer, model_path=str(stored))
    form = saved_form(asked, tokenizer, save_dtype, model_path=str(stored))
    model = blueprint.materialise(torch.device("cpu"))
    form.round(model.state_dict())
    save_model(
        iter(model.state_dict().items()),
        form.model,
        tokenizer,
        folder,
        generation_config=form.generation_config,
    )
    return folder


def config_of(folder: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((folder / "config.json").read_text())
    return document


def generated(folder: Path) -> list[int]:
    """20 tokens that the model makes of one."""
    model: Any = AutoModelForCausalLM.from_pretrained(folder)
    ids = torch.tensor([[1]])
    tokens: list[int] = model.generate(ids, attention_mask=ids, max_new_tokens=20)[0].tolist()
    return tokens


def test_untrained_tensors_are_saved_as_they_were(tmp_path: Path) -> None:
    stored = stored_model(tmp_path / "stored")
    saved = saved_again(stored, tmp_path / "saved")
    before = config_of(stored)
    after = config_of(saved)
    assert after.pop("pad_token_id", None) in (None, 2)  # the end token pads, where none did
    before.pop("pad_token_id", None)
    assert after == before
    assert (after["use_cache"], after["eos_token_id"]) == (True, ENDS)
    assert (after["attention_dropout"], after["dtype"]) == (0.0, "bfloat16")
    assert (saved / "generation_config.json").read_bytes() == json.dumps(SAMPLING).encode()
    ours, theirs = (load_file(folder / "model.safetensors") for folder in (saved, stored))
    assert all(torch.equal(ours[name], value) for name, value in theirs.items())
    assert ours.keys() == theirs.keys()
    assert generated(saved) == generated(stored)


def test_fp32_keeps_all_bits_of_a_bf16_model(tmp_path: Path) -> None:
    stored = stored_model(tmp_path / "stored")
    saved = saved_again(stored, tmp_path / "saved", SaveDtype.FP32)
    assert config_of(saved)["dtype"] == "float32"
    assert {tensor.dtype for tensor in load_file(saved / "model.safetensors").values()} == {
        torch.float32
    }


def test_a_tensor_stored_in_another_type_keeps_it(tmp_path: Path) -> None:
    stored = stored_model(tmp_path / "stored")
    file = stored / "model.safetensors"
    values = load_file(file)
    values["model.norm.weight"] = values["model.norm.weight"].float() + 1e-6
    save_file(values, file, metadata={"format": "pt"})
    again = load_file(saved_again(stored, tmp_path / "saved") / "model.safetensors")
    assert torch.equal(again["model.norm.weight"], values["model.norm.weight"])
    assert again["lm_head.weight"].dtype is torch.bfloat16


@pytest.mark.parametrize(("end", "ends"), [("</s>", ENDS), ("b", WORDS.index("b"))])
def test_another_tokenizer_may_have_another_end(end: str, ends: object, tmp_path: Path) -> None:
    stored = stored_model(tmp_path / "stored")
    asked = Workload(
        task=Task.CAUSAL_LM,
        examples=9,
        sequence_length=16,
        model=Model(path="s3://bucket/model"),
        tokenizer=Tokenizer(path="s3://bucket/tokenizer"),
    )
    tokenizer = tokenizer_of("<s> $A")
    tokenizer.eos_token = end
    form = saved_form(asked, tokenizer, SaveDtype.CHECKPOINT, model_path=str(stored))
    assert form.model.config.eos_token_id == ends
    assert (form.generation_config is not None) == (ends == ENDS)


@pytest.mark.parametrize("strategy", ["single", "fsdp"])
def test_the_weights_are_rounded_once_at_the_end_and_evaluated_so(
    strategy: str, tmp_path: Path
) -> None:
    stored = stored_model(tmp_path / "stored")
    document = run_document(
        workload={"model": {"path": "s3://bucket/model"}, "tokenizer": None},
        settings={"dropout": 0.3, "strategy": strategy},
        measurement={
            "max_steps": 4,
            "evaluate": True,
            "evaluate_every_steps": 4,
            "save_model": True,
        },
    )
    job = tmp_path / "job"
    job.mkdir()
    end = run_training(
        job,
        document,
        write_texts(tmp_path / "texts"),
        environment={"SM_CHANNEL_MODEL": str(stored)},
        processes=1 if strategy == "single" else 2,
    )
    assert end.exit_code == 0, end.output
    evaluations = [evaluation["metrics"]["loss"] for evaluation in end.of_kind("evaluation")]
    assert len(evaluations) == 2  # after the last step, and of what is saved
    assert evaluations[0] != evaluations[1]
    saved = load_file(job / "model" / "model.safetensors")
    before = load_file(stored / "model.safetensors")
    assert {tensor.dtype for tensor in saved.values()} == {torch.bfloat16}
    assert any(not torch.equal(saved[name], before[name]) for name in before)
    assert config_of(job / "model")["eos_token_id"] == ENDS
    assert len(generated(job / "model")) > 1
