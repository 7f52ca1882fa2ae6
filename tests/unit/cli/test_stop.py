"""`traindyno stop`: no job starts after it, and a person reads for which jobs it waits."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from localcloud import cloud, daemons
from localcloud.home import Daemon, Home, Ports
from tests.unit.cli.test_execution_receipt import target_of
from tests.unit.cli.test_progress import state
from tests.unit.lab.test_reconcile_runs import lab_with_jobs
from tests.unit.lab_in_memory import EXECUTION, NOW, SETTINGS, MemoryLab, make_lab, no_sleep
from tests.unit.planned_lab import Carried, items_of_round, measure, planned
from traindyno.api import progress
from traindyno.api.execution_state import State
from traindyno.api.lab_target import LabTarget
from traindyno.cli.commands.execution_commands import JobsStillRunning, await_jobs
from traindyno.cli.lab_choice import LabChoice
from traindyno.cli.main import commands
from traindyno.core.jobs.job import parse_owner, runs_of
from traindyno.lab.submit_run import submit_run


def stopping_target(lab: MemoryLab, monkeypatch: pytest.MonkeyPatch) -> LabTarget:
    target = target_of(lab)
    target.executions.start(EXECUTION, {})
    monkeypatch.setattr(LabChoice, "find_target", lambda _: target)
    monkeypatch.setattr(LabTarget, "find_ended", lambda _: None)
    return target


def test_no_job_starts_once_stop_has_told_step_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Step Functions may call SubmitRun on, and StopRuns may come minutes later."""
    lab, runs = make_lab()
    target = stopping_target(lab, monkeypatch)
    stop = target.executions.stop
    refused = []

    def stop_and_go_on(execution_id: str, *, reason: str) -> None:
        stop(execution_id, reason=reason)
        refused.append(
            submit_run(
                runs[0], "t", services=lab.services, settings=SETTINGS, now=NOW, sleep=no_sleep
            ).answered
        )

    monkeypatch.setattr(target.executions, "stop", stop_and_go_on)
    answer = CliRunner().invoke(commands, ["stop", EXECUTION, "--local"])
    assert answer.exit_code == 0, answer.output
    assert refused == ["stopped_by_user"]
    assert lab.jobs.jobs == {}


def test_stop_names_the_awaited_jobs_each_minute(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lab, (first, second) = lab_with_jobs(2)
    target = stopping_target(lab, monkeypatch)
    seconds = [0.0]

    def sleep(length: float) -> None:
        seconds[0] += length
        if seconds[0] == 70:
            lab.attempts.close(first)

    with pytest.raises(JobsStillRunning, match=second):
        await_jobs(target, EXECUTION, clock=lambda: seconds[0], sleep=sleep)
    lines = capsys.readouterr().err.replace("\n", " ").split("waiting for the end of ")[1:]
    assert lines[0].split() == ["2", "training", "jobs:", f"{first},", second]
    assert lines[1].split() == ["1", "training", "job:", second]
    assert len(lines) == 10


class Silent(progress.Display):
    def show(self, state: State) -> None:
        pass


@pytest.mark.parametrize("dies", [False, True])
def test_a_follower_of_a_stopped_execution_waits_for_its_recorded_runs(
    dies: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab, (name,) = lab_with_jobs(1)
    target = stopping_target(lab, monkeypatch)
    target.executions.stop(EXECUTION, reason="a person did")
    seen = []

    def observations(*_: Any) -> Iterator[State]:
        for number in range(3):
            seen.append(number)
            if number == 1:
                lab.attempts.close(name)
            yield state(status="ABORTED")

    monkeypatch.setattr(progress, "observe", observations)
    monkeypatch.setattr(
        LabTarget, "find_ended", lambda _: "the local cloud has ended" if dies else None
    )
    assert progress.follow(target, EXECUTION, Silent(lambda _: None)).status == "ABORTED"
    assert seen == ([0] if dies else [0, 1])


def test_stop_waits_for_no_job_of_an_ended_service(monkeypatch: pytest.MonkeyPatch) -> None:
    lab, (name,) = lab_with_jobs(1)
    target = stopping_target(lab, monkeypatch)
    monkeypatch.setattr(
        LabTarget,
        "find_ended",
        lambda _: "the local SageMaker service of the local cloud has ended",
    )
    with pytest.raises(
        JobsStillRunning, match=f"{name}.*the local SageMaker service of the local cloud has ended"
    ):
        await_jobs(target, EXECUTION, sleep=lambda _: pytest.fail("it waits"))


@pytest.mark.parametrize("needs_service", [True, False])
@pytest.mark.parametrize(
    "alive", [(), (cloud.MINISTACK,), (cloud.SAGEMAKER,), (cloud.MINISTACK, cloud.SAGEMAKER)]
)
def test_the_ended_part_is_named_and_stopping_needs_ministack_only(
    alive: tuple[str, ...], needs_service: bool, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = {cloud.MINISTACK: 4566, cloud.SAGEMAKER: 4567}
    running = {part: Daemon(process_id=1, port=parts[part]) for part in alive}
    monkeypatch.setattr(daemons, "running", lambda _, part: running.get(part))
    home = Home(tmp_path)
    (tmp_path / cloud.FORMAT).touch()
    (tmp_path / "ports.json").write_text(json.dumps({"aws": 4566, "sagemaker": 4567}))
    if cloud.MINISTACK in alive and (cloud.SAGEMAKER in alive or not needs_service):
        assert cloud.require_ports(home, needs_service=needs_service) == Ports(
            aws=4566, sagemaker=4567
        )
        return
    with pytest.raises(daemons.LocalCloudFailed) as refused:
        cloud.require_ports(home, needs_service=needs_service)
    text = str(refused.value)
    named = [
        name
        for part, name in cloud.NAMES.items()
        if f"{name} of the local cloud in" in text and part not in alive
    ]
    assert named == ([cloud.NAMES[part] for part in parts if part not in alive] if alive else [])
    assert text.startswith("no local cloud runs") is (not alive)


@pytest.mark.parametrize("command", ["stop", "report"])
def test_a_stopped_execution_has_the_verdict_and_the_report_of_its_measurements(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = planned(4, measurement={"trials": 2, "jobs": "separate"})
    items = items_of_round(lab)
    for item in items[:2]:
        measure(lab, item)
    without_rate = {
        run.run_id: Carried(step_seconds=(0.5,)) for run in runs_of(parse_owner(items[2]))
    }
    measure(lab, items[2], carried=without_rate)
    target = stopping_target(lab, monkeypatch)
    before = dict(lab.objects.contents)
    if command == "report":
        target.executions.stop(EXECUTION, reason="enough")
    answer = CliRunner().invoke(
        commands, [command, EXECUTION, "--local", "--output", str(tmp_path)]
    )
    assert answer.exit_code == (0 if command == "stop" else 1), answer.output
    text = " ".join(answer.output.split())
    assert "2 of 3 runs measured 2 of 2 cells; the 3 runs cost " in text
    assert f"1 of {len(items)} runs has no result" in text
    assert "Either they had not started when the execution ended, or" in text
    page = (tmp_path / f"{EXECUTION}.html").read_text()
    assert "2 of 3 runs measured 2 of 2 cells; the 3 runs cost " in page
    assert "aborted: StoppedByUser" in page
    assert lab.objects.contents == before, "a person may lack the right to write there"
    row = lab.services.executions.find(EXECUTION)
    assert row is not None
    assert (row.judgement is not None and row.judgement.run_count == 3) == (command == "stop")


def test_an_execution_stopped_before_its_first_result_has_no_verdict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopping_target(planned(4), monkeypatch).executions.stop(EXECUTION, reason="a mistake")
    answer = CliRunner().invoke(
        commands, ["report", EXECUTION, "--local", "--output", str(tmp_path)]
    )
    assert answer.exit_code == 1
    assert "execution-1: aborted: StoppedByUser\na mistake\n" in answer.output
    assert list(tmp_path.iterdir()) == []
