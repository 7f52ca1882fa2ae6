"""Every example of docs/python.md, run in order as a reader's notebook would, and compared with the
command line.
"""

import json
import os
import re
from typing import Any

import pytest

from localcloud.home import HOME_VARIABLE
from tests.local.forked_programs import REPO_ROOT
from tests.local.local_lab import LocalLab
from traindyno.core.verdict.report_data import report_document

pytestmark = [pytest.mark.local, pytest.mark.nightly]

PAGE = REPO_ROOT / "docs" / "python.md"
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def names(lab: LocalLab) -> dict[str, Any]:
    """What the examples have defined at the end of the page."""
    blocks = BLOCK.findall(PAGE.read_text())
    assert len(blocks) > 8
    defined: dict[str, Any] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(lab.folder)
        patch.setenv(HOME_VARIABLE, str(lab.home.folder))
        before = dict(os.environ)
        for block in blocks:
            exec(compile(block, PAGE.name, "exec"), defined)
        assert dict(os.environ) == before
    return defined


def test_the_examples_measure_the_same_as_the_script(names: dict[str, Any]) -> None:
    assert {problem.partition(":")[0] for problem in names["problems"]} >= {
        "goal",
        "limits.max_hours",
    }
    assert names["planned"].plan.run_count == len(names["results"]) == 4
    for delay, rate in names["rates"]:
        assert 0.3 * 10_000 / delay < rate < 10_000 / delay
    assert names["best"] == 5
    labels = {row.cell_id: row.label for row in names["verdict"].rows}
    assert labels[names["verdict"].recommended] == "delay_milliseconds 5"


def test_the_command_lines_report_is_the_same(names: dict[str, Any], lab: LocalLab) -> None:
    answer = lab.succeed("report", "sleeper", "--local", "--format", "json", "--output", "fetched")
    assert json.loads(json.dumps(report_document(names["report"].data))) == answer.json()
    assert names["path"].read_bytes() == (lab.folder / "fetched" / "sleeper.html").read_bytes()
