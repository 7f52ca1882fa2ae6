"""TRL's SFTTrainer makes the same rows of plain texts as a causal-lm job, and its other trainers'
samples are counted as its users count them.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tokenizers import processors

from tests.training.jobs import REPO_ROOT, SCRIPTS
from tests.unit.run_samples import known
from traindyno.core.run.workload import Dataset, Workload
from traindyno.core.step_log.line import DIRECTORY_VARIABLE
from traindyno.core.step_log.reader import read_step_log
from traindyno.core.step_log.step_table import tabulate_steps
from traindyno.core.suite.choices import Task
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


def run_with_trl(script: str, *arguments: str, step_log: Path | None = None) -> str:
    """The last line that the script writes."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(map(str, (ENVIRONMENT, REPO_ROOT))),
        "HF_HUB_OFFLINE": "1",
        **({} if step_log is None else {DIRECTORY_VARIABLE: str(step_log)}),
    }
    command = [sys.executable, script, *arguments]
    ended = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    return ended.stdout.splitlines()[-1]


@pytest.mark.parametrize("name", ["CPO", "DPO", "GRPO", "KTO", "ORPO", "Reward", "RLOO"])
def test_samples_of_trls_trainers_are_pairs_and_prompts(name: str, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "train.jsonl").write_text("".join(json.dumps({"text": t}) + "\n" for t in TEXTS))
    train_tokenizer(ASKED, data, 300).save_pretrained(tmp_path / "tokenizer")
    script = SCRIPTS / "trl_trainers.py"
    folder = tmp_path / "log"
    went_through = run_with_trl(str(script), name, str(tmp_path / "tokenizer"), step_log=folder)
    (path,) = folder.rglob("*.jsonl")
    log = read_step_log({path.name: path.read_text().splitlines()})
    session = known(log.measured)
    assert sum(known(tabulate_steps(session)).samples) == int(went_through) > 0


@pytest.mark.parametrize("template", [None, "<s> $A"], ids=["plain", "begin token"])
def test_trl_has_the_same_rows_of_plain_texts(template: str | None, tmp_path: Path) -> None:
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
    theirs = run_with_trl(*map(str, files))
    prepare(ASKED, tokenizer, data, tmp_path / "out", packing=False)
    sequences = read_sequences(tmp_path / "out" / "train")
    spans = zip(sequences.begins, sequences.lengths, strict=True)
    ours = [sequences.tokens[begin : begin + length].tolist() for begin, length in spans]
    assert ours == json.loads(theirs)
    if template is not None:
        assert {row[0] for row in ours} == {begin}
