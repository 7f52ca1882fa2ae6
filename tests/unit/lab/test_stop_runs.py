"""StopRuns: the jobs of an execution that is over are stopped, within AWS's rates."""

from datetime import UTC, datetime

import pytest

from tests.unit.lab.test_reconcile_runs import lab_with_jobs, look
from tests.unit.lab_in_memory import EXECUTION, NOW, UNHURRIED
from tests.unit.stubbed import stubbed
from traindyno.aws.executions import Executions
from traindyno.core.errors import Throttled
from traindyno.lab.reconcile_runs import Swept
from traindyno.lab.stop_runs import RequestPace, stop_runs, was_refused


def test_stopping_takes_a_second_for_each_job() -> None:
    lab, names = lab_with_jobs(2)
    slept: list[float] = []
    pace = RequestPace(may_go_on=lambda: True, sleep=slept.append)
    assert stop_runs(EXECUTION, services=lab.services, pace=pace) == 2
    assert lab.jobs.stopped == names
    assert slept == [1.0, 1.0]


def test_a_throttled_stop_is_asked_for_again() -> None:
    lab, (name,) = lab_with_jobs(1)
    lab.jobs.stop_refusals = [Throttled("rate")]
    assert stop_runs(EXECUTION, services=lab.services, pace=UNHURRIED) == 1
    assert lab.jobs.stopped == [name]
    assert lab.attempt(name).stopped_for == "stopped_by_user"


def test_a_lost_stop_is_repeated_and_a_working_one_ends_the_matter() -> None:
    lab, (name,) = lab_with_jobs(1)
    stop_runs(EXECUTION, services=lab.services, pace=UNHURRIED)
    assert look(lab, status="ABORTED").stopped == 1
    lab.jobs.end(name, "Stopped")
    lab.answers.gone = {"token-0"}
    assert look(lab, status="ABORTED") == Swept(open=1, overdue=1, left=0, stopped=0)
    assert look(lab, status="ABORTED") == Swept(open=0, overdue=0, left=0, stopped=0)


@pytest.mark.parametrize(
    ("error", "refused"),
    [("SuiteRefused", True), ("SuiteInvalid", True), ("PreparationFailed", False), (None, False)],
)
def test_a_refused_suite_is_told_from_a_failed_one(error: str | None, refused: bool) -> None:
    arn = "arn:aws:states:us-east-1:111111111111:stateMachine:traindyno-suites"
    described = {"executionArn": arn, "stateMachineArn": arn, "name": EXECUTION, "status": "FAILED"}
    with stubbed("stepfunctions") as (client, stubber):
        answer = {
            **described,
            "startDate": datetime.fromtimestamp(NOW, UTC),
            **({"error": error} if error else {}),
        }
        stubber.add_response("describe_execution", answer)
        assert was_refused(EXECUTION, Executions(client, arn)) is refused


def test_an_execution_forgotten_by_step_functions_was_not_refused() -> None:
    with stubbed("stepfunctions") as (client, stubber):
        stubber.add_client_error("describe_execution", "ExecutionDoesNotExist")
        assert not was_refused(
            EXECUTION, Executions(client, "arn:aws:states:us-east-1:1:stateMachine:x")
        )
