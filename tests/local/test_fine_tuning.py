"""The commands of docs/fine-tuning.md lead from a file of conversations to a served model."""

import re
import shlex

import pytest

from tests.local.forked_programs import REPO_ROOT
from tests.local.local_lab import LocalLab

pytestmark = [pytest.mark.local, pytest.mark.nightly]

PAGE = (REPO_ROOT / "docs" / "fine-tuning.md").read_text()
BLOCK = PAGE.partition("<!-- commands: run by tests/local/test_fine_tuning.py -->\n")[2]
COMMANDS = re.findall(
    r"^    traindyno +(.*?) *(?:#.*)?$", BLOCK.partition("<!-- end -->")[0], re.MULTILINE
)


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
