"""A client that dies before or after any of its calls leaves a record of each thing that is billed,
and a second try bills nothing twice.
"""

import copy
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.unit.cli.test_execution_receipt import target_of
from tests.unit.lab_in_memory import EXECUTION, MemoryLab
from tests.unit.planned_lab import empty_lab, take_in
from tests.unit.serving_in_memory import DEPLOYMENT, NAME, MemoryServing
from tests.unit.slices.training.test_lab import NamedOnce, Stopped, stopped_training
from tests.unit.slices.training.test_report import finished
from tests.unit.slices.without_a_slice import QUICKSTART
from tests.unit.suites import unprepared_document
from traindyno.api.lab_target import LabTarget
from traindyno.api.plans import start_suite
from traindyno.api.suite_loading import load_suite
from traindyno.aws.executions import ExecutionNameRefused
from traindyno.cli.lab_choice import LabChoice
from traindyno.cli.main import commands
from traindyno.core.serving.deployment import ModelNotServable
from traindyno.slices.serving.client import refuse_second
from traindyno.slices.training.lab import find_training

SYNTHETIC = {"dataset": {"format": "synthetic"}}
BUCKET_CALLS = ("find", "write", "copy_large", "delete", "list_sizes")
EXECUTION_CALLS = ("start", "describe")
HOSTING_CALLS = ("create_model", "create_endpoint_config", "create_endpoint")


class Died(BaseException):
    """The process of a client was killed."""


@dataclass
class Calls:
    """Of a client, by their number from 1; it dies before or after the call ``last``."""

    last: int = 0
    is_after: bool = False
    made: int = 0

    def through(self, service: Any, names: tuple[str, ...]) -> None:
        for name in names:
            setattr(service, name, self._counted(getattr(service, name)))

    def _counted(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any, **named: Any) -> Any:
            self.made += 1
            is_last = self.made == self.last
            if is_last and not self.is_after:
                raise Died
            try:
                return call(*arguments, **named)
            finally:
                if is_last:
                    raise Died

        return counted


def deaths(make: Callable[[Calls], Callable[[], Any]]) -> Iterator[Callable[[], Any]]:
    """A command for each call and side at which it died, to be tried again."""
    most = Calls()
    make(most)()
    assert most.made
    for number in range(1, most.made + 1):
        for is_after in (False, True):
            command = make(Calls(last=number, is_after=is_after))
            with pytest.raises(Died):
                command()
            yield command


def command_in(target: LabTarget, *arguments: str) -> Callable[[], Any]:
    def call() -> Any:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(LabChoice, "find_target", lambda _: target)
            return CliRunner().invoke(commands, [*arguments, "--no-wait"])

    return call


def like(other: MemoryLab) -> MemoryLab:
    lab = MemoryLab()
    lab.objects.contents.update(other.objects.contents)
    lab.table.items.update(copy.deepcopy(other.table.items))
    return lab


def started(target: LabTarget) -> list[str]:
    return [each.execution_id for each in target.executions.list_latest(9)]


def test_a_training_is_recorded_before_it_is_billed_and_billed_once() -> None:
    places, measured = list[LabTarget](), empty_lab()
    take_in(measured, unprepared_document())
    finished(measured)

    def make(calls: Calls) -> Callable[[], Any]:
        lab = like(measured)
        target = replace(target_of(lab), executions=NamedOnce())
        calls.through(lab.objects, BUCKET_CALLS)
        calls.through(target.executions, EXECUTION_CALLS)
        places.append(target)
        cell = lab.summary(next(iter(lab.run_rows))).cell_id
        return command_in(target, "train", EXECUTION, "--cell", cell, "--name", "t")

    for again in deaths(make):
        target = places[-1]
        for name in started(target):
            assert find_training(target, name) is not None
        answer = again()
        assert answer.exit_code == 0 or "exists already" in str(answer.exception), answer.output
        assert started(target) == ["t"]
        found = find_training(target, "t")
        assert found is not None
        assert found.execution_id == "t"


def test_a_training_goes_on_in_one_execution_from_its_checkpoints() -> None:
    places = list[Stopped]()

    def make(calls: Calls) -> Callable[[], Any]:
        stopped = stopped_training()
        calls.through(stopped.lab.objects, BUCKET_CALLS)
        calls.through(stopped.target.executions, EXECUTION_CALLS)
        places.append(stopped)
        return command_in(stopped.target, "train", "--resume", EXECUTION)

    for again in deaths(make):
        stopped, following = places[-1], f"{EXECUTION}-2"
        answer = again()
        assert answer.exit_code == 0 or "is still running" in str(answer.exception), answer.output
        assert started(stopped.target) == [following, EXECUTION]
        found = find_training(stopped.target, following)
        assert found is not None
        assert found.earlier == (EXECUTION,)
        assert stopped.lab.objects.contents[stopped.checkpoint_key(following)] == b"three"


def test_a_suite_is_started_once_under_its_name() -> None:
    """Its name is said before it is started."""
    places, loaded = list[LabTarget](), load_suite(QUICKSTART, local=True)
    document = {**loaded.document, "workload": loaded.document["workload"] | SYNTHETIC}
    suite = replace(loaded, document=document)

    def make(calls: Calls) -> Callable[[], Any]:
        target, said = replace(target_of(MemoryLab()), executions=NamedOnce()), list[str]()
        calls.through(target.executions, EXECUTION_CALLS)
        places.append(target)

        def call() -> None:
            try:
                start_suite(suite, target, files=(), name="s", allowed=frozenset(), say=said.append)
            finally:
                assert "starting s" in said

        return call

    for again in deaths(make):
        with suppress(ExecutionNameRefused):
            again()
        assert started(places[-1]) == ["s"]


def test_an_endpoint_is_recorded_before_it_is_billed_and_billed_once() -> None:
    places = list[MemoryServing]()

    def make(calls: Calls) -> Callable[[], Any]:
        lab = MemoryServing()
        names = iter([NAME, f"{NAME}4", f"{NAME}5"])
        calls.through(lab.objects, BUCKET_CALLS)
        calls.through(lab.sagemaker, HOSTING_CALLS)
        places.append(lab)

        def call() -> None:
            deployment = replace(DEPLOYMENT, name=next(names))
            refuse_second(deployment, lab.serving)
            lab.deploy(deployment)

        return call

    for again in deaths(make):
        lab = places[-1]
        assert all(lab.serving.find(name) is not None for name in lab.sagemaker.endpoints)
        try:
            again()
        except ModelNotServable as refused:
            assert f"undeploy {NAME}" in str(refused)
        assert len(lab.sagemaker.endpoints) <= 1
