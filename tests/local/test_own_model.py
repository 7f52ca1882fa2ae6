"""The suite of docs/own-model.md runs in the local cloud as it is written, and those of ``init``,
to their verdict.
"""

import json

import pytest

from tests.local.forked_programs import REPO_ROOT
from tests.local.local_lab import LocalLab

pytestmark = [pytest.mark.local, pytest.mark.nightly]
WORK = (
    "--task",
    "sequence-classification",
    "--data",
    str(REPO_ROOT / "suites/own_model/reviews.csv"),
)
SCRIPT = REPO_ROOT / "suites/own_script"
SMALL = {
    "model_type": "bert",
    "hidden_size": 32,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "vocab_size": 600,
}


def test_four_lines_and_a_file_lead_to_a_verdict(lab: LocalLab) -> None:
    suite = REPO_ROOT / "suites/own_model.yaml"
    answer = lab.succeed("run", str(suite), "--local", "--name", "own-model", "--format", "json")
    report = answer.json()
    assert "default workload.examples: 600" in answer.errors
    assert {result["outcome"] for result in report["results"]} <= {"completed", "outpaced"}
    assert report["verdict"]["recommended"] in [cell["cell_id"] for cell in report["cells"]]


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("folder", ("--model", str(REPO_ROOT / "suites/own_model/model"), *WORK)),
        ("new", ("--model", "config.json", *WORK)),
        (
            "script",
            ("--script", str(SCRIPT), "--examples", "2000", "--data", f"{SCRIPT}_data/houses.csv"),
        ),
    ],
)
def test_a_suite_of_init_leads_to_a_verdict(
    name: str, options: tuple[str, ...], lab: LocalLab
) -> None:
    (lab.folder / "config.json").write_text(json.dumps({**SMALL, "intermediate_size": 64}))
    begun = lab.succeed("init", f"{name}.yaml", "--local", *options)
    assert "no basis" in begun.output
    answer = lab.succeed("run", f"{name}.yaml", "--local", "--name", name, "--format", "json")
    assert answer.json()["verdict"]["recommended"] is not None
    again = lab.succeed("init", f"{name}-2.yaml", "--local", *options, "--format", "json")
    runs = [cell["evidence"].removesuffix(" of yours") for cell in again.json()["cells"]]
    assert all(run.partition(" ")[2] in ("run", "runs") for run in runs), runs
