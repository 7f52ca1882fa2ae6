"""The model's configuration fits the tokenizer and the suite's settings."""

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from transformers import AutoConfig, AutoTokenizer, PreTrainedConfig

from tests.training.small_models import small_values
from tests.training.word_tokenizer import word_tokenizer
from traindyno.core.run.settings import Settings
from traindyno.core.run.workload import Dataset, Model, Workload
from traindyno.core.suite.choices import Task
from training.data.prepare import train_tokenizer
from training.errors import WorkloadError
from training.models.model import build_model
from training.models.model_check import refuse_forward
from training.models.model_config import model_config

FOLDER_TEXT = "text,label\n" + "good morning,1\nbad night,0\n" * 20
WORDS = tuple(map(str, range(96)))
CLASSIFIED_BY_THE_END_TOKEN = ("bart", "mbart", "mvp", "plbart")


def workload(task: Task, kind: str) -> Workload:
    return Workload(
        task=task,
        examples=1,
        model=Model(config={"model_type": kind, **small_values(kind), "vocab_size": 300}),
        dataset=Dataset(path="data"),
        sequence_length=16,
        label_count=2 if task is Task.SEQUENCE_CLASSIFICATION else None,
    )


def config_of(task: Task, kind: str, dropout: float) -> PreTrainedConfig:
    return model_config(workload(task, kind), None, model_path=None, dropout=dropout)


def test_dropout_leaves_a_flag_with_the_same_name_alone() -> None:
    config = config_of(Task.MASKED_LM, "esm", 0.25)
    assert (config.hidden_dropout_prob, config.attention_probs_dropout_prob) == (0.25, 0.25)
    assert config.token_dropout is config_of(Task.MASKED_LM, "esm", 0.0).token_dropout is False


@pytest.mark.parametrize(
    ("task", "kind"),
    [
        (Task.SEQUENCE_CLASSIFICATION, "gpt2"),
        (Task.SEQUENCE_CLASSIFICATION, "camembert"),
        (Task.MASKED_LM, "roberta"),
    ],
)
def test_rows_can_be_padded_or_the_tokenizer_is_refused(task: Task, kind: str) -> None:
    with pytest.raises(WorkloadError, match="neither a padding nor an end token"):
        model_config(workload(task, kind), word_tokenizer(WORDS), model_path=None)
    model_config(workload(task, kind), word_tokenizer(WORDS, pad_token="0"), model_path=None)


def test_a_folder_without_a_tokenizers_files_has_no_tokenizer(tmp_path: Path) -> None:
    """transformers loads one for which all words are unknown."""
    AutoConfig.for_model("bert").save_pretrained(tmp_path)
    with pytest.raises(WorkloadError, match=r"has special tokens only: .* expected these files"):
        model_config(
            workload(Task.SEQUENCE_CLASSIFICATION, "bert"),
            AutoTokenizer.from_pretrained(tmp_path),
            model_path=None,
        )


@pytest.mark.parametrize(
    ("kind", "length", "told"),
    [
        ("t5gemma", 16, "can't take 16 tokens of this tokenizer: .*bos_token_id has to be defined"),
        ("reformer", 12, "can't take 12 tokens of this tokenizer: .*has to be a multiple"),
        ("reformer", 16, None),
        ("bert", 16, None),
    ],
)
def test_two_rows_are_tried_without_values(kind: str, length: int, told: str | None) -> None:
    asked = replace(workload(Task.SEQUENCE_CLASSIFICATION, kind), sequence_length=length)
    config = model_config(asked, word_tokenizer(WORDS, pad_token="0"), model_path=None)
    with pytest.raises(WorkloadError, match=told) if told else nullcontext():
        refuse_forward(config, asked)


@pytest.mark.parametrize("kind", CLASSIFIED_BY_THE_END_TOKEN)
def test_a_trained_tokenizer_has_the_end_token_for_a_classifier(tmp_path: Path, kind: str) -> None:
    (tmp_path / "train.csv").write_text(FOLDER_TEXT)
    asked = workload(Task.SEQUENCE_CLASSIFICATION, kind)
    tokenizer = train_tokenizer(asked, tmp_path, 300)
    model = build_model(asked, Settings(instance="local.cpu"), tokenizer, model_path=None)
    batch = tokenizer(["good morning", "bad night, all of it"], padding=True, return_tensors="pt")
    inputs = {name: batch[name] for name in ("input_ids", "attention_mask")}
    assert model.materialise(torch.device("cpu"))(**inputs).logits.shape == (2, 2)
