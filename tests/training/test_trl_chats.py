"""TRL's SFTTrainer makes the same tokens and labels of conversations as format chat: with each
template that it knows, with templates that have marks of their own, and of prompts with
completions.
"""

import json
import os
import subprocess
import sys
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from tests.training.chat_samples import ANSWER, CHATS, QUESTION, chat_tokenizer, in_parts
from tests.training.jobs import REPO_ROOT, SCRIPTS
from traindyno.core.suite.choices import DatasetFormat, LossOn
from traindyno.core.suite.workload import Dataset
from training.data.chat_encoding import ChatEncoder
from training.data.conversations import parsed
from training.errors import WorkloadError

ENVIRONMENT = REPO_ROOT / ".envs" / "trl"
TEMPLATES = ENVIRONMENT / "trl" / "chat_templates"
MARKED = {
    "chatml": (
        "{% for m in messages %}<|im_start|>{{ m.role }}\n{% if m.role == 'assistant' %}"
        "{% generation %}{{ m.content }}<|im_end|>{% endgeneration %}{% else %}{{ m.content }}"
        "<|im_end|>{% endif %}\n{% endfor %}"
    ),
    "plain": (
        "{{ bos_token }}{% for m in messages %}{% if m.role == 'assistant' %} A:"
        "{%- generation -%}{{ ' ' + m.content + eos_token }}{%- endgeneration -%}"
        "{% else %} Q: {{ m.content }}{% endif %}{% endfor %}"
    ),
}
READ_ONLY_PARTS = ("idefics3", "llava_next", "smolvlm")
READ_PARTS = (*READ_ONLY_PARTS, "qwen3_vl", "gemma3")
PROMPTS: dict[str, dict[str, Any]] = {
    "messages": {"prompt": [QUESTION], "completion": [ANSWER]},
    "several": {"prompt": CHATS["several turns"]["messages"][:3], "completion": [ANSWER]},
    "texts": {"prompt": "2 + 3 is", "completion": " 5, of course"},
    "ended": {"prompt": "2 + 3 is", "completion": " 5</s>"},
}

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(
        not (ENVIRONMENT / ".installed").exists(), reason="make .envs/trl/.installed brings TRL"
    ),
]


def known_templates() -> dict[str, str]:
    names = sorted(
        name.removesuffix("_training.jinja")
        for name in json.loads(
            (files("training.data.chat_templates") / "originals.json").read_text()
        ).values()
    )
    return {name: (TEMPLATES / f"{name}.jinja").read_text(encoding="utf-8") for name in names}


def theirs(questions: list[Any], folder: Path) -> list[Any]:
    (folder / "asked.json").write_text(json.dumps(questions))
    command = [
        sys.executable,
        str(SCRIPTS / "trl_chats.py"),
        str(folder),
        str(folder / "asked.json"),
    ]
    found = subprocess.run(
        command,
        env={**os.environ, "PYTHONPATH": str(ENVIRONMENT), "HF_HUB_OFFLINE": "1"},
        check=False,
        capture_output=True,
        text=True,
    )
    assert found.returncode == 0, found.stderr[-3000:]
    answers: list[Any] = json.loads(found.stdout.splitlines()[-1])
    return answers


def ours(row: dict[str, Any], tokenizer: Any, **options: Any) -> Any:
    dataset = Dataset(path="data", format=DatasetFormat.CHAT, **options)
    encoder = ChatEncoder(tokenizer, dataset, sequence_length=10_000, packing=False)
    try:
        (found,) = encoder.encode(parsed(iter([("rows", 1, row)])))
    except WorkloadError as error:
        return str(error)
    assert found.loss_mask is not None
    labels = [
        token if counts else -100
        for token, counts in zip(found.tokens, found.loss_mask, strict=True)
    ]
    return [found.tokens.tolist(), [int(label) for label in labels]]


def test_tokens_and_labels_of_answers_are_those_of_trl(tmp_path: Path) -> None:
    templates = {**known_templates(), **MARKED}
    assert len(templates) >= 33
    tokenizers = {}
    questions: list[Any] = []
    for name, template in templates.items():
        training = TEMPLATES / f"{name}_training.jinja"
        written = training.read_text(encoding="utf-8") if training.exists() else ""
        tokenizers[name] = chat_tokenizer(template, template, written)
        tokenizers[name].save_pretrained(tmp_path / name)
        for chat in CHATS.values():
            forms = [in_parts(chat)] if name in READ_PARTS else []
            forms += [] if name in READ_ONLY_PARTS else [chat]
            questions += [(name, [row], {"assistant_only_loss": True}) for row in forms]
    compared = dict.fromkeys(templates, 0)
    for (name, (row,), _), found in zip(questions, theirs(questions, tmp_path), strict=True):
        if isinstance(found, str):
            continue
        assert ours(row, tokenizers[name]) == found[0], (name, row)
        compared[name] += 1
    assert min(compared.values()) >= 2, compared


def test_prompts_and_completions_are_those_of_trl(tmp_path: Path) -> None:
    tokenizers = {}
    questions: list[Any] = []
    for name, template in known_templates().items():
        if name in READ_ONLY_PARTS:
            continue
        tokenizers[name] = chat_tokenizer(template, template)
        tokenizers[name].save_pretrained(tmp_path / name)
        questions += [(name, [row], {}) for row in PROMPTS.values()]
        questions += [(name, [CHATS["several turns"]], {})]
    same = 0
    for (name, (row,), _), found in zip(questions, theirs(questions, tmp_path), strict=True):
        loss_on = LossOn.ALL if "messages" in row else LossOn.ANSWERS
        if isinstance(found, str):
            continue
        tokens, labels = ours(row, tokenizers[name], loss_on=loss_on)
        assert tokens == found[0][0], (name, row)
        # Nothing predicts the first token.
        assert labels[1:] == found[0][1][1:], (name, row)
        same += 1
    assert same > 0.8 * len(questions)
