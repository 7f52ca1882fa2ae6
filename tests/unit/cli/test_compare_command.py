"""The exit status and the formats of ``traindyno compare``."""

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner, Result

from tests.unit.core.verdict.test_gate import STEADY, record, scaled
from traindyno.cli.commands import compare_command
from traindyno.cli.lab_choice import LabChoice
from traindyno.cli.main import commands
from traindyno.core.run.workload import Workload
from traindyno.core.verdict.comparison import ExecutionRecord

RECORDS = {
    "before": record("before", STEADY),
    "same": record("same", STEADY),
    "slower": record("slower", scaled(1.5)),
    "nearly": record("nearly", scaled(1.1)),
}


@pytest.fixture(autouse=True)
def lab(monkeypatch: pytest.MonkeyPatch) -> None:
    unlike = replace(RECORDS["before"].suite, workload=replace(_workload(), examples=7))
    records = {**RECORDS, "unlike": replace(RECORDS["same"], suite=unlike)}
    target = SimpleNamespace(results=records, require_execution=lambda _: None)
    monkeypatch.setattr(LabChoice, "find_target", lambda _: target)
    monkeypatch.setattr(compare_command, "load_record", _load)


def _workload() -> Workload:
    return RECORDS["before"].suite.workload


def _load(records: dict[str, ExecutionRecord], name: str) -> ExecutionRecord:
    return records[name]


def run(second: str, *options: str) -> Result:
    return CliRunner().invoke(commands, ["compare", "before", second, *options])


@pytest.mark.parametrize(
    ("second", "tolerance", "status", "said"),
    [
        ("same", "10 %", 0, "Passed: no cell is slower or dearer by more than 10 %."),
        ("slower", "10 %", 1, " is slower by +49.3 % (+49.0 to +49.7 %)"),
        ("nearly", "0.1", 3, "Open: the trials can't tell whether a change exceeds 10 %."),
    ],
)
def test_the_exit_status_is_the_gates(second: str, tolerance: str, status: int, said: str) -> None:
    answer = run(second, "--tolerance", tolerance)
    assert answer.exit_code == status, answer.output
    assert said in answer.output


def test_without_a_tolerance_a_change_is_no_failure() -> None:
    assert run("slower").exit_code == 0


def test_unlike_work_has_the_status_of_an_open_answer() -> None:
    answer = run("unlike", "--tolerance", "10 %")
    assert answer.exit_code == 3
    assert "they did not do the same work" in answer.stderr


def test_markdown_has_the_answer_apart_from_the_table() -> None:
    answer = run("same", "--tolerance", "10 %", "--format", "markdown")
    assert answer.exit_code == 0
    lines = answer.output.splitlines()
    place = lines.index("Passed: no cell is slower or dearer by more than 10 %.")
    assert lines[place + 1] == ""
    assert lines[place + 2].startswith("| cell | samples/s |")


def test_the_document_has_the_gate() -> None:
    answer = run("slower", "--tolerance", "10 %", "--format", "json")
    assert answer.exit_code == 1
    assert json.loads(answer.output)["gate"]["finding"] == "worse"
