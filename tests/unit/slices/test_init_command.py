"""`traindyno init` where nothing is estimated: scripts, and what is refused."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.local.forked_programs import Answer, run_command
from traindyno.api.suite_defaults import CompletedSuite
from traindyno.slices.estimates.client import default_goal
from traindyno.slices.estimates.first_suite import Asked, propose

PRICES = (
    "region: us-east-1\n"
    "as_of: 2026-11-21\n"
    "prices: {ml.g5.xlarge: 1.408, ml.g6e.xlarge: 2.6, ml.g5.12xlarge: 7.09}\n"
)
QUOTAS = """
region: us-east-1
quotas:
  ml.g5.xlarge for training job usage: 4
  ml.g5.12xlarge for training job usage: 1
  ml.g6e.xlarge for training job usage: 0
  Number of instances across all training jobs: 8
"""
CONFIG = {
    "model_type": "gpt2",
    "n_layer": 12,
    "n_embd": 768,
    "n_head": 12,
    "n_positions": 1024,
    "vocab_size": 50257,
}
FILES = ("--prices", "prices.yaml", "--quotas", "quotas.yaml")
MODEL = (
    "--task",
    "causal-lm",
    "--model",
    "config.json",
    "--data",
    "s3://bucket/texts/",
    "--sequence-length",
    "512",
)
WORK = (*MODEL, "--examples", "100000", "--max-usd", "50")


def init(folder: Path, *options: str) -> Answer:
    for name, text in {
        "prices.yaml": PRICES,
        "quotas.yaml": QUOTAS,
        "config.json": json.dumps(CONFIG),
    }.items():
        (folder / name).write_text(text)
    return run_command(*options, folder=folder)


def written(folder: Path) -> Any:
    return yaml.safe_load((folder / "suite.yaml").read_text())


@pytest.mark.parametrize(
    ("word", "advice"),
    [
        ("ner", "write a script"),
        ("dpo", "with TRL, as suites/trl_dpo.yaml does"),
        ("text-generation", "name causal-lm"),
        ("causal_lm", 'did you mean "causal-lm"?'),
    ],
)
def test_a_word_for_a_task_has_its_advice(word: str, advice: str, tmp_path: Path) -> None:
    answer = init(tmp_path, "init", "--task", word, "--model", "gpt2", "--data", "x.csv", *FILES)
    assert answer.status == 2
    said = " ".join(answer.errors.replace("\u2502", " ").split())
    assert advice in said
    assert ("did you mean" in said) == ("did you mean" in advice)


def test_a_script_has_one_type_of_each_device_and_no_estimate(tmp_path: Path) -> None:
    (tmp_path / "code").mkdir()
    (tmp_path / "code/train.py").write_text("print('trains')\n")
    answer = init(
        tmp_path, "init", "--script", "code", "--examples", "1000", "--max-usd", "20", *FILES
    )
    assert answer.status == 0, answer.errors
    why = "no basis for estimates: a script's model is known only while it runs"
    assert why in " ".join(answer.output.split())
    said = "memory unknown of 20.9 GiB, time unknown, cost unknown, $1.41/h; no basis"
    assert f"compare with: {said}" in (tmp_path / "suite.yaml").read_text()
    suite = written(tmp_path)
    assert "estimates" not in suite
    assert [suite["baseline"]["instance"], *(cell["instance"] for cell in suite["include"])] == [
        "ml.g5.xlarge",
        "ml.g6e.xlarge",
    ]


def test_a_script_on_this_machine_has_one_cell_without_settings_that_it_does_not_see(
    tmp_path: Path,
) -> None:
    (tmp_path / "code").mkdir()
    (tmp_path / "code/train.py").write_text("print('trains')\n")
    script = {"task": "script", "source": "code", "entry_point": "train.py", "examples": 1000}
    asked = Asked(
        sections={"workload": script},
        folder=tmp_path,
        instances=(),
        max_instances=1,
        local=True,
        adapter=None,
    )
    proposal = propose(asked, prices=None, quotas=None, lab=None, say=lambda _: None)
    assert len(proposal.cells) == 1


@pytest.mark.parametrize(("cap", "is_left_out"), [("3", True), ("0.5", False)])
def test_types_over_the_cap_are_left_out(cap: str, is_left_out: bool, tmp_path: Path) -> None:
    check_cap(("--script", "code"), cap, is_left_out, tmp_path)


def check_cap(work: tuple[str, ...], cap: str, is_left_out: bool, tmp_path: Path) -> None:
    """A type of which one job may cost more than the cap is left out, unless all are such."""
    (tmp_path / "code").mkdir()
    (tmp_path / "code/train.py").write_text("print('trains')\n")
    options = (
        *work,
        "--examples",
        "1000",
        "--max-hours",
        "4",
        "--max-usd",
        cap,
        "--instance",
        "ml.g5.xlarge",
    )
    answer = init(tmp_path, "init", *options, "--instance", "ml.g6e.xlarge", *FILES)
    assert answer.status == 0, answer.errors
    said = "left out, one job may cost more than --max-usd: ml.g6e.xlarge"
    assert (said in answer.output, "over limits.max_usd" not in answer.output) == (
        is_left_out,
        is_left_out,
    )
    assert ("ml.g6e.xlarge" not in (tmp_path / "suite.yaml").read_text()) == is_left_out


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (MODEL, "--max-usd: it is missing"),
        (WORK[2:], "--task: it is missing"),
        ((), "--task, --model, --data, --max-usd: it is missing"),
        ((*WORK, "--goal", "cheapest-to"), "Expected cheapest or fastest"),
        ((*WORK, "--script", "code"), "--script"),
        ((*WORK[:3], "prices.yaml", *WORK[4:]), "workload.model"),
    ],
)
def test_missing_or_wrong_options_are_named_and_nothing_is_written(
    options: tuple[str, ...], words: str, tmp_path: Path
) -> None:
    answer = init(tmp_path, "init", *options, *FILES)
    assert answer.status == 2
    assert words in " ".join(answer.errors.replace("│", " ").split())
    assert "Traceback" not in answer.errors
    assert not (tmp_path / "suite.yaml").exists()


@pytest.mark.parametrize("is_local", [True, False])
def test_the_default_goal_equals_a_suites_without_one(is_local: bool, tmp_path: Path) -> None:
    instance = {"instance": "local.cpu" if is_local else "ml.g5.xlarge"}
    suite = CompletedSuite({"training": instance}, stem="a", folder=tmp_path, is_local=is_local)
    assert default_goal(is_local=is_local) == suite.document["goal"]
