"""An execution that the lab doesn't have: the message names those that it has."""

from dataclasses import replace

import pytest

from tests.unit.cli.test_execution_receipt import target_of
from tests.unit.planned_lab import empty_lab
from traindyno.api.lab_target import LabTarget
from traindyno.aws.executions import ExecutionUnknown

NAMES = ("albert-1", "albert-2", "resnet", "gpt", "llama", "quick-look")


def lab_with(*names: str) -> LabTarget:
    target = target_of(empty_lab())
    for name in names:
        target.executions.start(name, {})
    return target


def test_a_misspelt_name_gets_the_nearest_ones_and_the_latest_ones() -> None:
    target = lab_with(*NAMES)
    assert target.describe("albert-1").is_running
    with pytest.raises(ExecutionUnknown) as refused:
        target.describe("albert1")
    said = str(refused.value)
    assert said.startswith('lab traindyno has no execution "albert1": did you mean "albert-1" or "albert-2"? ')
    latest = [found.execution_id for found in target.executions.list_latest(5)]
    assert said.endswith(f"Expected one of the executions that `traindyno list --local` shows: {', '.join(latest)}, …")


def test_a_lab_without_executions_says_so() -> None:
    target = replace(lab_with(), is_local=False)
    with pytest.raises(
        ExecutionUnknown, match=r'no execution "x", expected one .*`traindyno list` shows: there are none$'
    ):
        target.require_execution("x")
