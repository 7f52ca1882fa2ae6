"""TRL's SFTTrainer makes the same rows of plain texts as a causal-lm job."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tokenizers import processors

from tests.training.jobs import REPO_ROOT, SCRIPTS
from traindyno.core.suite.choices import Task
from traindyno.core.suite.workload import Dataset, Workload
from training.data.prepare import prepare, train_tokenizer
from training.data.sequences import read_sequences

ENVIRONMENT = REPO_ROOT / ".envs" / "trl"
ASKED = Workload(
    task=Task.CAUSAL_LM, examples=100, sequence_length=512, dataset=Dataset(path="data")
)
TEXTS = ("Ein Haus am See.", "two\nlines", "it's 3 €, isn't it?", " begins with a blank", "x")

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(
        not (ENVIRONMENT / ".installed").exists(), reason="make .envs/trl/.installed brings TRL"
    ),
]


@pytest.mark.parametrize("template", [None, "<s> $A"], ids=["plain", "begin token"])
def test_rows_of_plain_texts_are_those_of_trl(template: str | None, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "train.jsonl").write_text("".join(json.dumps({"text": t}) + "\n" for t in TEXTS))
    tokenizer = train_tokenizer(ASKED, data, 300)
    if template is not None:
        tokenizer.add_special_tokens({"bos_token": "<s>"})
        begin = tokenizer.convert_tokens_to_ids("<s>")
        tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
            single=template, special_tokens=[("<s>", begin)]
        )
    tokenizer.save_pretrained(tmp_path / "tokenizer")
    (tmp_path / "texts.json").write_text(json.dumps(TEXTS))
    files = (SCRIPTS / "trl_rows.py", tmp_path / "tokenizer", tmp_path / "texts.json")
    command = [sys.executable, *map(str, files)]
    theirs = subprocess.run(
        command,
        env={**os.environ, "PYTHONPATH": str(ENVIRONMENT), "HF_HUB_OFFLINE": "1"},
        check=True,
        capture_output=True,
        text=True,
    )
    prepare(ASKED, tokenizer, data, tmp_path / "out", packing=False)
    found = read_sequences(tmp_path / "out" / "train")
    spans = zip(found.begins, found.lengths, strict=True)
    ours = [found.tokens[begin : begin + length].tolist() for begin, length in spans]
    assert ours == json.loads(theirs.stdout.splitlines()[-1])
    if template is not None:
        assert {row[0] for row in ours} == {begin}
