"""The commands of docs/fine-tuning.md lead from a file of conversations to a served model, and its
suites run.
"""

import re
import shlex
from typing import Any

import pytest
import yaml

from tests.local.forked_programs import REPO_ROOT
from tests.local.local_lab import LocalLab

pytestmark = [pytest.mark.local, pytest.mark.nightly, pytest.mark.timeout(1800)]

PAGE = (REPO_ROOT / "docs" / "fine-tuning.md").read_text()
BLOCK = PAGE.partition("<!-- commands: run by tests/local/test_fine_tuning.py -->\n")[2]
COMMANDS = re.findall(
    r"^    traindyno +(.*?) *(?:#.*)?$", BLOCK.partition("<!-- end -->")[0], re.MULTILINE
)

SUITES = REPO_ROOT / "suites"
TRL = REPO_ROOT / ".envs" / "trl"


def suite_of(name: str) -> dict[str, Any]:
    """With its paths from the root."""
    text = (SUITES / f"{name}.yaml").read_text().replace(" ./", f" {SUITES}/")
    document: dict[str, Any] = yaml.safe_load(text)
    return document


def test_the_commands_of_the_page_lead_to_a_served_model(lab: LocalLab) -> None:
    assert len(COMMANDS) >= 4
    told = {}
    for command in COMMANDS:
        words = [
            str(REPO_ROOT / word) if word.startswith("suites/") else word
            for word in shlex.split(command)
        ]
        answer = lab.succeed(*words)
        told[words[0]] = answer.output + answer.errors
    assert 'format: "chat" (the data has messages)' in told["plan"]
    assert "400 conversations of split train are longer than 128 tokens and" in told["plan"]
    assert "report: " in told["run"]


def test_a_race_searches_batches_confirms_and_trains_with_an_adapter(lab: LocalLab) -> None:
    document = suite_of("finetune_chat")
    document["training"] |= {"global_batch_size": 32}
    del document["training"]["batch_size_per_device"]
    adapters = [{"rank": rank, "learning_rate": 1.0e-2} for rank in (2, 8)]
    batch = {"search": "largest", "begin": 16}
    document |= {
        "matrix": {"adapter": adapters, "batch_size_per_device": [batch]},
        "examples": 640,
        "measurement": {"max_steps": 8, "trials": 2, "confirm": {"minutes": 0.05}},
        "search": "race",
    }
    report = lab.run_suite("adapters", document).json()
    assert {result["outcome"] for result in report["results"]} == {"completed"}
    assert {cell["settings"]["adapter"]["rank"] for cell in report["cells"]} == {2, 8}
    lab.succeed("train", "adapters", "--local", "--name", "adapters-whole")
    (training,) = lab.succeed("report", "adapters-whole", "--local", "--format", "json").json()[
        "results"
    ]
    assert training["outcome"] == "completed"


@pytest.mark.parametrize("name", ["trl_dpo", "trl_grpo"])
def test_a_suite_with_a_trainer_of_trl_runs_to_its_verdict(name: str, lab: LocalLab) -> None:
    if not TRL.exists():
        pytest.skip("make .envs/trl/.installed")
    document = suite_of(name)
    document["workload"]["source"] = str(SUITES / name)
    document["workload"]["environment"]["PYTHONPATH"] = str(TRL)
    document["limits"] |= {"max_job_seconds": 1800, "max_run_seconds": 900}  # a busy machine
    document["measurement"] = {"trials": 1}
    report = lab.run_suite(document.pop("name"), document).json()
    assert [result["outcome"] for result in report["results"]] == ["completed"] * 2
