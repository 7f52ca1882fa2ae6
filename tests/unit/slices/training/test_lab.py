"""A training says what it begins with, and goes on from where it stood, under names of its own,
and with no more than is left of its amount.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any
from unittest.mock import MagicMock

import pytest
from botocore.exceptions import ClientError
from typer.testing import CliRunner

from tests.unit.cli.test_execution_receipt import attempt_of, target_of
from tests.unit.cli.test_progress import state
from tests.unit.lab_in_memory import EXECUTION, NOW, PRICE, MemoryExecutions, MemoryLab, make_lab
from tests.unit.planned_lab import FixedQuotas, empty_lab, items_of_round, runs_of_item, take_in
from tests.unit.slices.training.test_report import finished
from tests.unit.store.samples import ROW
from tests.unit.suites import script_document, unprepared_document
from traindyno.api.execution_state import RunningJob
from traindyno.api.lab_target import LabTarget
from traindyno.aws.executions import ExecutionNameRefused
from traindyno.cli.lab_choice import LabChoice
from traindyno.cli.main import commands
from traindyno.core.errors import SuiteRefused
from traindyno.core.jobs.job_end import JobPhaseName
from traindyno.core.s3_keys import checkpoints_prefix, suite_key
from traindyno.core.suite.runs import run_id_of
from traindyno.core.suite.suite import Run, Suite
from traindyno.core.suite.suite_file import read_stored_suite
from traindyno.lab.check_quotas import check_quotas
from traindyno.slices.training.lab import (
    TrainingDisplay,
    TrainingRefused,
    find_training,
    plan_from_verdict,
    plan_to_resume,
    read_forecast,
    start_training,
)
from traindyno.slices.training.plan import Training, training_document, training_key


class TakenIn(MemoryExecutions):
    """A started execution is planned."""

    def __init__(self, lab: MemoryLab) -> None:
        super().__init__()
        self._lab = lab

    def start(self, execution_id: str, suite: Mapping[str, Any]) -> None:
        super().start(execution_id, suite)
        take_in(self._lab, json.loads(json.dumps(suite)), execution_id=execution_id)
        check_quotas(execution_id, quotas=FixedQuotas(4), bucket=self._lab.bucket, now=NOW)


class NamedOnce(MemoryExecutions):
    """As Step Functions answers for a name of which an execution has ended."""

    def start(self, execution_id: str, suite: Mapping[str, Any]) -> None:
        if execution_id in self._executions:
            raise ExecutionNameRefused(execution_id)
        super().start(execution_id, suite)


@dataclass(frozen=True, slots=True)
class Stopped:
    """A training of $1 that was stopped after its first checkpoint."""

    lab: MemoryLab
    target: LabTarget
    run: Run
    suite: Suite
    training: Training

    def pay(self, billable_seconds: float | None) -> None:
        """As a job leaves it that has ended. Without its time, its worst case stays reserved."""
        end = attempt_of(self.run, billable_seconds=billable_seconds, ended_at=1.0)
        row = replace(
            ROW,
            job_name=end.job_name,
            owner=self.run,
            submitted_at=0.0,
            reserved_usd=Decimal("0.6"),
        )
        noting = self.lab.runs.noting(EXECUTION, self.run.run_id, row.job_name)
        self.lab.spending.reserve(row, cap_usd=Decimal(1), also=[noting])
        is_known = billable_seconds is not None
        spent = Decimal(str(billable_seconds)) / 3600 * PRICE.usd_per_hour if is_known else None
        self.lab.spending.end(row, end, spent)
        self.lab.attempts.close(row.job_name)

    def checkpoint_key(self, execution: str) -> str:
        run_id = run_id_of(self.training.cell.cell_id, 1)
        return f"{checkpoints_prefix(execution, run_id)}state/step-3/state"

    def plan_again(self) -> Training:
        _, following = plan_to_resume(self.target, EXECUTION, max_usd=None)
        return following


def stopped_training() -> Stopped:
    lab, (run, *_) = make_lab(limits={"max_usd": 1, "max_hours": 1, "max_job_seconds": 1800})
    target = replace(target_of(lab), executions=NamedOnce())
    suite = target.results.read_as(suite_key(EXECUTION), read_stored_suite)
    made = Stopped(
        lab,
        target,
        run,
        suite,
        Training(training_id=EXECUTION, execution_id=EXECUTION, cell=run.cell, steps=9),
    )
    lab.bucket.write_json(training_key(EXECUTION), training_document(made.training))
    target.executions.start(EXECUTION, {})
    target.executions.stop(EXECUTION, reason="test")
    lab.bucket.write(made.checkpoint_key(EXECUTION), b"three", "")
    return made


@pytest.fixture
def stopped() -> Stopped:
    return stopped_training()


def client_error(status: int) -> ClientError:
    response: Any = {"Error": {"Code": "x"}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return ClientError(response, "StartExecution")


@pytest.mark.parametrize(
    ("trials", "cell", "told"),
    [
        (
            1,
            None,
            [
                f"the verdict of {EXECUTION} is undecided: training eager, the cheapest so "
                f"far; --cell names another; to see why: traindyno report {EXECUTION} --local"
            ],
        ),
        (1, "eager", []),
        (2, None, []),
    ],
)
def test_training_from_an_undecided_verdict_names_its_cell(
    trials: int, cell: str | None, told: list[str]
) -> None:
    lab = empty_lab()
    take_in(lab, unprepared_document(measurement={"trials": trials}))
    finished(lab)
    said: list[str] = []
    plan_from_verdict(
        target_of(lab),
        EXECUTION,
        cell=cell,
        name="tuned",
        max_usd=None,
        is_spot=False,
        changes={},
        say=said.append,
    )
    assert said == told


def test_a_training_is_shown_by_the_label_that_the_verdict_uses() -> None:
    """Its suite has one cell, in which nothing varies."""
    lab = empty_lab()
    take_in(lab, unprepared_document())
    finished(lab)
    target = replace(target_of(lab), executions=TakenIn(lab))
    suite, training = plan_from_verdict(
        target,
        EXECUTION,
        cell="compiled",
        name="tuned",
        max_usd=None,
        is_spot=False,
        changes={},
        say=print,
    )
    start_training(target, suite, training)
    (item,) = items_of_round(lab, execution_id="tuned")
    assert [run.cell.label for run in runs_of_item(item)] == ["compiled"]


def test_arguments_that_a_shell_reads_are_refused_before_the_start() -> None:
    lab = empty_lab()
    take_in(lab, script_document())
    finished(lab)
    with pytest.raises(SuiteRefused, match='got "--a b"'):
        plan_from_verdict(
            target_of(lab),
            EXECUTION,
            cell=None,
            name="tuned",
            max_usd=None,
            is_spot=False,
            changes={"a b": 1},
            say=print,
        )


def test_the_next_execution_has_the_checkpoints_and_the_rest_of_the_amount(
    stopped: Stopped,
) -> None:
    stopped.pay(300)
    suite, following = plan_to_resume(stopped.target, EXECUTION, max_usd=None)
    # 300 s at $1.20 per hour are $0.10
    assert suite == replace(
        stopped.suite, limits=replace(stopped.suite.limits, max_usd=Decimal("0.9"))
    )
    assert following.execution_id == f"{EXECUTION}-2"
    assert following.earlier_usd == pytest.approx(0.1)
    start_training(stopped.target, suite, following)
    assert stopped.lab.objects.contents[stopped.checkpoint_key(f"{EXECUTION}-2")] == b"three"


def test_a_training_goes_as_its_job_does_and_not_as_it_waited(stopped: Stopped) -> None:
    """Its job was submitted at 0, waited 900 s for the machine, and is billed for 30 s so far."""
    row = replace(ROW, owner=stopped.run, submitted_at=0.0, reserved_usd=Decimal("0.6"))
    noting = stopped.lab.runs.noting(EXECUTION, stopped.run.run_id, row.job_name)
    stopped.lab.spending.reserve(row, cap_usd=Decimal(1), also=[noting])
    prefix = checkpoints_prefix(EXECUTION, run_id_of(stopped.training.cell.cell_id, 1))
    steps = [json.dumps({"kind": "step", "step": step, "begin": 2.0 * step}) for step in (1, 2, 3)]
    log = "\n".join(steps).encode()
    stopped.lab.bucket.write(f"{prefix}step_log/{row.job_name}/rank-00000.1.jsonl", log, "")
    job = RunningJob(
        label="eager",
        instance="ml.g5.xlarge",
        job_phase=JobPhaseName.TRAINING,
        phase=None,
        step=3,
        seconds=40.0,
        billed_seconds=30.0,
    )
    forecast = read_forecast(stopped.target, stopped.training, job)
    assert forecast is not None
    assert (forecast.step, forecast.left_seconds) == (3, 12.0)
    usd_per_second = float(row.usd_per_hour) * row.instance_count / 3600
    assert forecast.time.actual == pytest.approx(40 + 12)
    assert forecast.cost.actual == pytest.approx(usd_per_second * (30 + 12))


@pytest.mark.parametrize(("steps", "is_told"), [(None, True), (9, False)])
def test_a_training_of_unknown_length_says_why_no_time_is_left(
    stopped: Stopped, steps: int | None, is_told: bool
) -> None:
    said: list[str] = []
    training = replace(stopped.training, steps=steps)
    TrainingDisplay(stopped.target, training, said.append).show(state())
    (line,) = said
    why = "no field names how many steps the script does, its projection is for workload.examples"
    assert (f"time left unknown: {why}" in line) is is_told


def test_a_job_with_an_unknown_cost_keeps_its_worst_case_out_of_the_amount(
    stopped: Stopped,
) -> None:
    stopped.pay(None)
    suite, _ = plan_to_resume(stopped.target, EXECUTION, max_usd=None)
    assert suite.limits.max_usd == Decimal("0.4")


def test_a_training_without_money_left_asks_for_an_amount(stopped: Stopped) -> None:
    stopped.lab.expose(Decimal(1))
    with pytest.raises(
        TrainingRefused, match=r"nothing is left of its \$1\.00; give it more with --max-usd"
    ):
        stopped.plan_again()
    assert plan_to_resume(stopped.target, EXECUTION, max_usd=Decimal(2))[0].limits.max_usd == 2


def test_a_training_renews_the_uploads_of_its_suite(stopped: Stopped) -> None:
    """The trials may have been weeks ago, and this may take weeks."""
    data = f"data/{'a' * 64}/"
    stopped.lab.bucket.write(f"{data}texts.jsonl", b"{}", "")
    dataset = stopped.suite.workload.dataset
    assert dataset is not None
    own = replace(dataset, path=f"s3://{stopped.lab.bucket.name}/{data}")
    workload = replace(stopped.suite.workload, dataset=own)
    suite = replace(stopped.suite, workload=workload)
    start_training(stopped.target, suite, stopped.plan_again())
    assert stopped.lab.objects.writes[f"{data}texts.jsonl"] == 2


def test_a_refused_execution_is_not_the_end_of_its_training(stopped: Stopped) -> None:
    """PlanSuite keeps no suite of an execution that it refuses, as one whose amount pays for no
    job.
    """
    stopped.pay(300)
    suite, second = plan_to_resume(stopped.target, EXECUTION, max_usd=Decimal("0.01"))
    start_training(stopped.target, suite, second)
    stopped.target.executions.stop(second.execution_id, reason="refused")
    suite, third = plan_to_resume(stopped.target, EXECUTION, max_usd=None)
    assert suite.limits.max_usd == Decimal("0.9")
    assert third.earlier == (EXECUTION, f"{EXECUTION}-2")
    start_training(stopped.target, suite, third)
    assert stopped.lab.objects.contents[stopped.checkpoint_key(f"{EXECUTION}-3")] == b"three"


def test_a_training_with_the_longest_name_goes_on_under_a_shorter_one(stopped: Stopped) -> None:
    longest = "t" * 80
    named = replace(stopped.training, training_id=longest, execution_id=longest)
    start_training(stopped.target, stopped.suite, named)
    suite = stopped.lab.bucket.read(suite_key(EXECUTION))
    for number in (2, 3):
        stopped.lab.bucket.write(suite_key(named.execution_id), suite, "")
        stopped.target.executions.stop(named.execution_id, reason="test")
        resumed, named = plan_to_resume(stopped.target, longest, max_usd=None)
        assert named.execution_id == f"{'t' * 78}-{number}"
        start_training(stopped.target, resumed, named)
    assert named.earlier == (longest, f"{'t' * 78}-2")


def test_another_training_with_the_name_of_a_continuation_is_left_alone(stopped: Stopped) -> None:
    other = replace(stopped.training, training_id=f"{EXECUTION}-2", execution_id=f"{EXECUTION}-2")
    start_training(stopped.target, stopped.suite, other)
    following = stopped.plan_again()
    assert (following.execution_id, following.earlier) == (f"{EXECUTION}-3", (EXECUTION,))
    assert stopped.checkpoint_key(other.execution_id) not in stopped.lab.objects.contents


def test_an_execution_with_the_name_of_a_continuation_gets_no_checkpoints(stopped: Stopped) -> None:
    stopped.lab.executions.create(replace(stopped.lab.plan(), execution_id=f"{EXECUTION}-2"))
    assert stopped.plan_again().execution_id == f"{EXECUTION}-3"
    assert stopped.checkpoint_key(f"{EXECUTION}-2") not in stopped.lab.objects.contents


def test_a_taken_name_keeps_its_training(stopped: Stopped) -> None:
    with pytest.raises(ExecutionNameRefused):
        start_training(stopped.target, stopped.suite, replace(stopped.training, steps=99))
    assert find_training(stopped.target, EXECUTION) == stopped.training


def test_a_refused_start_takes_its_record_back(stopped: Stopped) -> None:
    """A plain execution took the name after the look at it. After a fault, it may have started."""
    suite, following = plan_to_resume(stopped.target, EXECUTION, max_usd=None)
    for refusal, is_kept in ((ExecutionNameRefused("taken"), False), (client_error(500), True)):
        with pytest.MonkeyPatch.context() as patch, pytest.raises(type(refusal)):
            patch.setattr(NamedOnce, "start", MagicMock(side_effect=refusal))
            start_training(stopped.target, suite, following)
        assert (find_training(stopped.target, f"{EXECUTION}-2") is not None) is is_kept


@pytest.mark.parametrize("is_recorded_first", [True, False])
def test_a_refused_start_leaves_the_record_of_a_training_that_another_command_started(
    stopped: Stopped, is_recorded_first: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both resume, and copy checkpoints before either is started."""
    target = stopped.target
    suite, training = plan_to_resume(target, EXECUTION, max_usd=Decimal(1))
    late_suite, late = plan_to_resume(target, EXECUTION, max_usd=Decimal(2))
    assert training == late
    start = target.executions.start
    asked = list[Mapping[str, Any]]()

    def start_late() -> None:
        with pytest.raises(ExecutionNameRefused):
            start_training(target, late_suite, late)

    def start_other_first(name: str, document: Mapping[str, Any]) -> None:
        asked.append(document)
        is_first = len(asked) == 1
        if is_first and is_recorded_first:
            start_late()
            return
        if is_first:
            start_training(target, suite, training)
        elif is_recorded_first:
            start(name, asked[0])
        start(name, document)

    monkeypatch.setattr(target.executions, "start", start_other_first)
    if is_recorded_first:
        start_training(target, suite, training)
    else:
        start_late()
    record = find_training(target, late.execution_id)
    assert record is not None
    assert replace(record, command="") == training
    target.executions.stop(late.execution_id, reason="test")
    assert stopped.plan_again().earlier == (EXECUTION, late.execution_id)


def test_copies_of_a_dead_command_stay(stopped: Stopped) -> None:
    """It may be newer: its execution may have begun to write."""
    stopped.lab.bucket.write(stopped.checkpoint_key(f"{EXECUTION}-2"), b"newer", "")
    suite, following = plan_to_resume(stopped.target, EXECUTION, max_usd=None)
    start_training(stopped.target, suite, following)
    assert stopped.lab.objects.contents[stopped.checkpoint_key(f"{EXECUTION}-2")] == b"newer"


@pytest.mark.parametrize("is_kept", [True, False])
def test_a_training_without_a_checkpoint_says_that_it_begins_again(
    stopped: Stopped, is_kept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = stopped.checkpoint_key(EXECUTION).replace("state/step-3/state", "step_log/job/rank.jsonl")
    stopped.lab.bucket.write(log, b"{}", "")
    if not is_kept:
        stopped.lab.bucket.delete(stopped.checkpoint_key(EXECUTION))
    monkeypatch.setattr(LabChoice, "find_target", lambda _: stopped.target)
    answer = CliRunner().invoke(commands, ["train", "--resume", EXECUTION, "--no-wait"])
    assert answer.exit_code == 0, answer.output
    said = f"{EXECUTION} left no checkpoint: {EXECUTION}-2 begins again with step 1"
    assert (said in answer.output) is not is_kept
    assert log.replace(EXECUTION, f"{EXECUTION}-2") in stopped.lab.objects.contents
