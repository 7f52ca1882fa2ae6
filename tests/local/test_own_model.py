"""The suite of docs/own-model.md runs in the local cloud as it is written, to its verdict."""

import pytest

from tests.local.forked_programs import REPO_ROOT
from tests.local.local_lab import LocalLab

pytestmark = [pytest.mark.local, pytest.mark.nightly]


def test_four_lines_and_a_file_lead_to_a_verdict(lab: LocalLab) -> None:
    suite = REPO_ROOT / "suites/own_model.yaml"
    answer = lab.traindyno("run", str(suite), "--local", "--name", "own-model", "--format", "json")
    assert answer.status == 0, answer.errors
    report = answer.json()
    assert "default workload.examples: 600" in answer.errors
    assert {result["outcome"] for result in report["results"]} <= {"completed", "outpaced"}
    assert report["verdict"]["recommended"] in [cell["cell_id"] for cell in report["cells"]]
