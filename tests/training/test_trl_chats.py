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

import numpy as np
import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from tests.training.chat_samples import ANSWER, CHATS, QUESTION, chat_tokenizer, in_parts
from tests.training.jobs import REPO_ROOT, SCRIPTS
from tests.training.run_documents import parse_run, run_document, run_training
from traindyno.core.run.workload import Dataset
from traindyno.core.suite.choices import DatasetFormat, LossOn
from training.data.chat_encoding import ChatEncoder
from training.data.conversations import parsed
from training.data.loader import SeededOrder
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
STEPS = 50
BATCH = 3
ACCUMULATED = 2


def known_templates() -> dict[str, str]:
    names = sorted(
        name.removesuffix("_training.jinja")
        for name in json.loads(
            (files("training.data.chat_templates") / "originals.json").read_text()
        ).values()
    )
    return {name: (TEMPLATES / f"{name}.jinja").read_text(encoding="utf-8") for name in names}


def run_script(name: str, *files: Path) -> list[Any]:
    """What the script prints in TRL's environment."""
    done = subprocess.run(
        [sys.executable, str(SCRIPTS / name), *map(str, files)],
        env={**os.environ, "PYTHONPATH": str(ENVIRONMENT), "HF_HUB_OFFLINE": "1"},
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    answers: list[Any] = json.loads(done.stdout.splitlines()[-1])
    return answers


def theirs(questions: list[Any], folder: Path) -> list[Any]:
    (folder / "asked.json").write_text(json.dumps(questions))
    return run_script("trl_chats.py", folder, folder / "asked.json")


def ours(row: dict[str, Any], tokenizer: Any, **options: Any) -> Any:
    dataset = Dataset(path="data", format=DatasetFormat.CHAT, **options)
    encoder = ChatEncoder(tokenizer, dataset, sequence_length=10_000, packing=False)
    try:
        (row_of_tokens,) = encoder.encode(parsed(iter([("rows", 1, row)])))
    except WorkloadError as error:
        return str(error)
    assert row_of_tokens.loss_mask is not None
    labels = [
        token if counts else -100
        for token, counts in zip(row_of_tokens.tokens, row_of_tokens.loss_mask, strict=True)
    ]
    return [row_of_tokens.tokens.tolist(), [int(label) for label in labels]]


def test_trl_has_the_same_tokens_and_labels_of_answers(tmp_path: Path) -> None:
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
    for (name, (row,), _), answer in zip(questions, theirs(questions, tmp_path), strict=True):
        if isinstance(answer, str):
            continue
        own = ours(row, tokenizers[name])
        if "does not write the tool" in own:
            assert "add" not in tokenizers[name].decode(answer[0][0])
            continue
        assert own == answer[0], (name, row)
        compared[name] += 1
    assert min(compared.values()) >= 2, compared


def test_trl_has_the_same_prompts_and_completions(tmp_path: Path) -> None:
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
    for (name, (row,), _), answer in zip(questions, theirs(questions, tmp_path), strict=True):
        loss_on = LossOn.ALL if "messages" in row else LossOn.ANSWERS
        if isinstance(answer, str):
            continue
        tokens, labels = ours(row, tokenizers[name], loss_on=loss_on)
        assert tokens == answer[0][0], (name, row)
        # Nothing predicts the first token.
        assert labels[1:] == answer[0][1][1:], (name, row)
        same += 1
    assert same > 0.8 * len(questions)


def test_fifty_steps_have_the_losses_of_trl(tmp_path: Path) -> None:
    """The answers of a step's batches differ by far in their lengths."""
    template = MARKED["chatml"]
    model = tmp_path / "model"
    tokenizer = chat_tokenizer(template, template)
    tokenizer.save_pretrained(model)
    torch.manual_seed(1)
    sizes: dict[str, Any] = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2}
    config = LlamaConfig(vocab_size=len(tokenizer), num_attention_heads=4, **sizes)
    LlamaForCausalLM(config).save_pretrained(model)
    random = np.random.default_rng(7)
    rows = [
        {
            "messages": [
                {"role": "user", "content": f"{number} " * int(random.integers(1, 9))},
                {"role": "assistant", "content": f"{number % 9}" * int(random.integers(1, 120))},
            ]
        }
        for number in range(100)
    ]
    data = tmp_path / "data"
    data.mkdir()
    (data / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    document = run_document(
        workload={
            "model": {"path": str(model)},
            "tokenizer": None,
            "dataset": {"path": "s3://bucket/data", "format": "chat"},
            "sequence_length": 256,
            "label_count": None,
        },
        settings={
            "batch_size_per_device": BATCH,
            "gradient_accumulation_steps": ACCUMULATED,
            "packing": False,
            "padding": "longest",
        },
        measurement={"max_steps": STEPS},
    )
    ended = run_training(tmp_path, document, data)
    assert ended.exit_code == 0, ended.failure
    losses = [step["loss"] for step in ended.of_kind("step")]
    samples = BATCH * ACCUMULATED
    order = SeededOrder(len(rows), samples, parse_run(document).settings.seed)
    in_order = [rows[row] for step in range(STEPS) for row in order.step(step)]
    options = {
        "max_length": 256,
        "max_steps": STEPS,
        "per_device_train_batch_size": BATCH,
        "gradient_accumulation_steps": ACCUMULATED,
        "learning_rate": 0.001,
        "weight_decay": parse_run(document).settings.weight_decay,
        "assistant_only_loss": True,
    }
    (tmp_path / "asked.json").write_text(json.dumps({"rows": in_order, "options": options}))
    of_batches = run_script("trl_steps.py", model, tmp_path / "asked.json")
    expected = np.asarray(of_batches).reshape(STEPS, ACCUMULATED).sum(axis=1)
    np.testing.assert_allclose(losses, expected, rtol=1e-5)
    assert losses[-1] < 0.8 * losses[0]
