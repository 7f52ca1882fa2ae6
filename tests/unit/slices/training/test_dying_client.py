"""A client that dies before or after any of its calls leaves a record of each thing that is billed,
and a second try bills nothing twice.
"""

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.local.local_lab import script_suite
from tests.unit.cli.test_execution_receipt import target_of
from tests.unit.dying import BUCKET_CALLS, Calls, deaths
from tests.unit.lab_in_memory import EXECUTION, MemoryLab, like
from tests.unit.planned_lab import empty_lab, take_in
from tests.unit.serving_in_memory import DEPLOYMENT, NAME, MemoryServing
from tests.unit.slices.training.test_lab import NamedOnce, Stopped, stopped_training
from tests.unit.slices.training.test_report import finished
from tests.unit.suites import unprepared_document
from traindyno.api.lab_target import LabTarget
from traindyno.api.plans import start_suite
from traindyno.api.suite_loading import load_suite
from traindyno.aws import clients
from traindyno.aws.executions import ExecutionNameRefused
from traindyno.cli.commands.serving_commands import refuse_second
from traindyno.cli.lab_choice import LabChoice
from traindyno.cli.main import commands
from traindyno.core.serving.deployment import ModelNotServable
from traindyno.slices.training.lab import find_training

UPLOAD_CALLS = ("get_paginator", "put_object", "upload_file")
EXECUTION_CALLS = ("start", "describe", "list_latest")
HOSTING_CALLS = ("create_model", "create_endpoint_config", "create_endpoint")


def command_in(target: LabTarget, *arguments: str) -> Callable[[], Any]:
    def call() -> Any:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(LabChoice, "find_target", lambda _: target)
            return CliRunner().invoke(commands, [*arguments, "--no-wait"])

    return call


def started(target: LabTarget) -> list[str]:
    return [execution.execution_id for execution in target.executions.list_latest(9)]


def test_a_training_is_recorded_before_it_is_billed_and_billed_once() -> None:
    places = list[LabTarget]()
    measured = empty_lab()
    take_in(measured, unprepared_document())
    finished(measured)
    cell = measured.summary(next(iter(measured.run_rows))).cell_id

    def make(calls: Calls) -> Callable[[], Any]:
        lab = like(measured)
        target = replace(target_of(lab), executions=NamedOnce())
        calls.through_lab(lab)
        calls.through(target.executions, EXECUTION_CALLS)
        places.append(target)
        return command_in(target, "train", EXECUTION, "--cell", cell, "--name", "t")

    for again in deaths(make):
        target = places[-1]
        for name in started(target):
            assert find_training(target, name) is not None
        answer = again()
        assert answer.exit_code == 0 or "exists already" in str(answer.exception), answer.output
        assert started(target) == ["t"]
        training = find_training(target, "t")
        assert training is not None
        assert training.execution_id == "t"


def test_a_training_goes_on_in_one_execution_from_its_checkpoints() -> None:
    places = list[Stopped]()

    def make(calls: Calls) -> Callable[[], Any]:
        stopped = stopped_training()
        calls.through_lab(stopped.lab)
        calls.through(stopped.target.executions, EXECUTION_CALLS)
        places.append(stopped)
        return command_in(stopped.target, "train", "--resume", EXECUTION)

    for again in deaths(make):
        stopped = places[-1]
        following = f"{EXECUTION}-2"
        answer = again()
        assert answer.exit_code == 0 or "is still running" in str(answer.exception), answer.output
        assert started(stopped.target) == [following, EXECUTION]
        training = find_training(stopped.target, following)
        assert training is not None
        assert training.earlier == (EXECUTION,)
        assert stopped.lab.objects.contents[stopped.checkpoint_key(following)] == b"three"


class MemoryUploads:
    """The calls of S3's client that the staging of local files makes."""

    def __init__(self) -> None:
        self.keys: set[str] = set()

    def get_paginator(self, operation_name: str) -> "MemoryUploads":
        assert operation_name == "list_objects_v2"
        return self

    def paginate(self, *, Bucket: str, Prefix: str) -> list[dict[str, Any]]:
        there = [key for key in self.keys if key.startswith(Prefix)]
        return [{"Contents": [{"Key": key, "LastModified": datetime.now(UTC)} for key in there]}]

    def put_object(self, *, Bucket: str, Key: str, Body: bytes) -> None:
        self.keys.add(Key)

    def upload_file(self, path: str, bucket: str, key: str) -> None:
        self.keys.add(key)


@pytest.mark.parametrize("kind", ["run", "confirm", "continue"])
def test_a_suite_is_started_once_under_its_name(kind: str, tmp_path: Path) -> None:
    """Before it is started, its name is said, and how to try again."""
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "train.py").write_text("print(1)")
    (tmp_path / "texts.txt").write_text("a text")
    workload = {"source": "code", "channels": {"texts": "texts.txt"}}
    changes = {"measurement": {"confirm": {"minutes": 1, "argument": "steps"}}}
    document = script_suite("code", {}, workload=workload, **changes if kind == "confirm" else {})
    (tmp_path / "suite.yaml").write_text(json.dumps({"name": "own", **document}))
    suite = load_suite(tmp_path / "suite.yaml", local=True)
    earlier = [EXECUTION]
    if kind != "continue":
        earlier = []
    places = list[tuple[LabTarget, MemoryUploads]]()

    def make(calls: Calls) -> Callable[[], Any]:
        lab = MemoryLab()
        uploads = MemoryUploads()
        said = list[str]()
        target = replace(target_of(lab), executions=NamedOnce())
        for name in earlier:
            target.executions.start(name, {})
            target.executions.stop(name, reason="enough")
        calls.through_lab(lab)
        calls.through(target.executions, EXECUTION_CALLS)
        calls.through(uploads, UPLOAD_CALLS)
        places.append((target, uploads))

        def call() -> None:
            began = len(started(target))
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(clients, "s3", lambda: uploads)
                try:
                    start_suite(
                        suite,
                        target,
                        files=(),
                        name="s",
                        allowed=frozenset(),
                        say=said.append,
                        continues=next(iter(earlier), None),
                    )
                finally:
                    is_said = any(line.startswith("starting s; ") for line in said)
                    assert is_said or len(started(target)) == began
            assert "repeat it with --name s" in said[-1]

        return call

    for again in deaths(make):
        target, uploads = places[-1]
        with suppress(ExecutionNameRefused):
            again()
        assert started(target) == ["s", *earlier]
        assert {key.rpartition("/")[2] for key in uploads.keys} == {"sourcedir.tar.gz", "texts.txt"}


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
