import json
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.unit.lab_in_memory import EXECUTION, NOW, SETTINGS, MemoryLab, make_lab, no_sleep
from traindyno.aws.training_jobs import JobRefused
from traindyno.core.errors import NextAttempt, ServiceFault, SlotUnavailable, Throttled
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.suite.suite import Run
from traindyno.lab.finish_run import finish_run
from traindyno.lab.submit_run import submit_run
from traindyno.store.owners import RunRow

REDEPLOYED = replace(SETTINGS, source_s3_uri="s3://assets/newer.tar.gz", images={"gpu": "me/efa:2"})


def submit(lab: MemoryLab, run: Run, token: str = "token-1", now: float = NOW) -> None:
    submit_run(run, token, services=lab.services, settings=SETTINGS, now=now, sleep=no_sleep)


def test_row_is_written_before_the_job_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    lab, (run, *_) = make_lab()
    start = lab.jobs.start
    written = list[str]()

    def start_job(request: Mapping[str, Any]) -> None:
        written.extend(lab.attempt_rows)
        start(request)

    monkeypatch.setattr(lab.jobs, "start", start_job)
    submit(lab, run)
    ((name, row),) = lab.attempt_rows.items()
    assert written == [name]
    assert [request["TrainingJobName"] for request in lab.jobs.requests] == [name]
    assert (row.number, row.token, row.is_open, row.end) == (1, "token-1", True, None)
    assert lab.answers.given == []


def test_a_repeated_delivery_starts_no_second_job() -> None:
    lab, (run, *_) = make_lab()
    submit(lab, run)
    submit(lab, run)
    assert len(lab.jobs.jobs) == 1
    # 480 s for the image, 1800 s, and 480 s to stop and to upload, on 1 instance at 1.20 USD an
    # hour, held back once
    assert lab.money.exposed_usd == Decimal("0.92")


@pytest.mark.parametrize("error", [SlotUnavailable("full"), Throttled("slow down")])
def test_a_submission_turned_away_leaves_no_attempt_behind(error: NextAttempt) -> None:
    lab, (run, *_) = make_lab()
    lab.jobs.refusals = [error]
    submit(lab, run)
    assert lab.answers.given == [("token-1", type(error).__name__, str(error))]
    assert lab.attempt_rows == {}
    assert lab.run_rows[run.run_id].jobs == frozenset()
    assert lab.money.exposed_usd == 0


def test_the_next_try_after_being_turned_away_is_still_the_first_attempt() -> None:
    lab, (run, *_) = make_lab()
    lab.jobs.refusals = [SlotUnavailable("full")]
    submit(lab, run)
    submit(lab, run, "token-2")
    (row,) = lab.attempt_rows.values()
    assert (row.number, row.token) == (1, "token-2")


def test_next_try_takes_over_an_attempt_with_a_job_possibly_started_by_a_fault() -> None:
    lab, (run, *_) = make_lab()
    lab.jobs.refusals = [ServiceFault("503")]
    submit(lab, run)
    assert [answer[1] for answer in lab.answers.given] == ["ServiceFault"]
    submit(lab, run, "token-2")
    (row,) = lab.attempt_rows.values()
    assert (row.number, row.token) == (1, "token-2")
    assert len(lab.jobs.jobs) == 1
    assert lab.money.exposed_usd == Decimal("0.92")


def test_after_a_shortage_the_next_attempt_has_a_new_name() -> None:
    lab, (run, *_) = make_lab()
    submit(lab, run)
    (first,) = lab.jobs.jobs
    lab.jobs.end(
        first, "Failed", reason="CapacityError: Unable to provision requested ML compute capacity."
    )
    finish_run(first, services=lab.services, now=NOW + 500)
    submit(lab, run, "token-2")
    assert [row.number for row in lab.attempt_rows.values()] == [1, 2]
    assert len(lab.jobs.jobs) == 2


def test_task_started_again_after_its_job_completed_gets_the_answer_and_no_job() -> None:
    lab, (run, *_) = make_lab()
    submit(lab, run)
    (name,) = lab.jobs.jobs
    lab.jobs.end(name, "Completed")
    lab.answers.gone = {"token-1"}
    finish_run(name, services=lab.services, now=NOW + 500)
    submit(lab, run, "token-2")
    assert [answer[:2] for answer in lab.answers.given] == [("token-2", "success")]
    assert len(lab.jobs.jobs) == 1


def test_a_refused_job_is_a_result_and_not_an_error() -> None:
    lab, (run, *_) = make_lab()
    lab.jobs.refusals = [JobRefused(Outcome.PERMISSION_ERROR, "the role can't be assumed")]
    submit(lab, run)
    ((_, name, output),) = lab.answers.given
    assert name == "success"
    assert '"outcome": "permission_error"' in output
    assert lab.attempt_rows == {}


def test_nothing_is_started_for_a_stopped_execution() -> None:
    lab, (run, *_) = make_lab()
    lab.executions.mark_stopping(EXECUTION)
    submit(lab, run)
    assert lab.jobs.requests == []
    assert '"outcome": "stopped_by_user"' in lab.answers.given[0][2]


@pytest.mark.parametrize("at", ["the reservation", "the wait for its slot"])
def test_nothing_is_started_once_stop_was_told_whatever_was_read_before(
    at: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The execution is marked by ``stop`` after SubmitRun has read its row."""
    lab, (run, *_) = make_lab()
    reserve = lab.spending.reserve

    def stop_and_reserve(*given: Any, **named: Any) -> Any:
        lab.executions.mark_stopping(EXECUTION)
        return reserve(*given, **named)

    if at == "the reservation":
        monkeypatch.setattr(lab.spending, "reserve", stop_and_reserve)
    submit_run(
        run,
        "token-1",
        services=lab.services,
        settings=replace(SETTINGS, seconds_between_starts=1.0),
        now=NOW,
        sleep=lambda _: lab.executions.mark_stopping(EXECUTION),
        clock=lambda: NOW,
    )
    assert lab.jobs.requests == []
    assert '"outcome": "stopped_by_user"' in lab.answers.given[0][2]
    assert lab.attempt_rows == {}
    assert lab.money.exposed_usd == 0


def test_no_attempt_of_a_stopped_execution_is_taken_over() -> None:
    """A fault left the row; whether its job exists is left to the sweep."""
    lab, (run, *_) = make_lab()
    lab.jobs.refusals = [ServiceFault("503")]
    submit(lab, run)
    lab.executions.mark_stopping(EXECUTION)
    submit(lab, run, "token-2")
    assert len(lab.jobs.jobs) == 0
    assert [answer[0] for answer in lab.answers.given] == ["token-1", "token-2"]
    assert '"outcome": "stopped_by_user"' in lab.answers.given[1][2]


def test_nothing_possibly_outlasting_the_suites_hours_is_started() -> None:
    lab, (run, *_) = make_lab()
    submit(lab, run, now=NOW + 4 * 3600 - 1799)  # 1,799 of 4 hours left, a job may take 1,800 s
    assert lab.jobs.requests == []
    assert '"outcome": "cost_stopped"' in lab.answers.given[0][2]


def test_a_run_waits_while_jobs_in_flight_may_use_up_the_cap() -> None:
    lab, runs = make_lab(limits={"max_usd": 1, "max_hours": 4, "max_job_seconds": 1800})
    submit(lab, runs[0], "a")
    submit(lab, runs[1], "b")  # 0.60 + 0.60 > 1, but nothing is spent yet
    assert [answer[:2] for answer in lab.answers.given] == [("b", "SlotUnavailable")]
    assert len(lab.jobs.jobs) == 1


def test_a_run_no_longer_within_the_cap_is_a_result() -> None:
    lab, runs = make_lab(limits={"max_usd": 1, "max_hours": 4, "max_job_seconds": 1800})
    submit(lab, runs[0], "a")
    (name,) = lab.jobs.jobs
    lab.jobs.end(name, "Completed", billable_seconds=1800)
    finish_run(name, services=lab.services, now=NOW + 2000)
    submit(lab, runs[1], "b")  # 0.60 spent, 0.60 more would be 1.20
    assert lab.answers.given[-1][0] == "b"
    assert '"outcome": "cost_stopped"' in lab.answers.given[-1][2]
    assert lab.money.exposed_usd == lab.money.spent_usd == Decimal("0.60")


def test_an_unexpected_refusal_of_a_service_still_answers_the_task() -> None:
    lab, (run, *_) = make_lab()
    lab.jobs.refusals = [
        ClientError({"Error": {"Code": "Odd", "Message": "odd"}}, "CreateTrainingJob")
    ]
    submit(lab, run)
    assert lab.answers.given[0][1] == "ServiceFault"
    assert run.run_id in lab.answers.given[0][2]


def test_delivery_turned_away_leaves_the_attempt_of_a_simultaneous_one_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lab, (run, *_) = make_lab()
    submit(lab, run)
    # the second had read before the first wrote
    monkeypatch.setattr(
        lab.runs, "read", lambda execution, name: RunRow(execution_id=execution, owner_id=name)
    )
    lab.jobs.refusals = [Throttled("slow down")]
    submit(lab, run)
    assert list(lab.attempt_rows) == list(lab.jobs.jobs)
    assert lab.money.exposed_usd == Decimal("0.92")


@pytest.mark.parametrize("ending", ["its refusal", "a stop"])
def test_a_delivery_leaves_an_attempt_alone_that_a_later_one_took_over(
    ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lambda answered the state machine with an error while the function still ran."""
    lab, (run, *_) = make_lab()
    start = lab.jobs.start

    def take_over(_: float = 0) -> None:
        monkeypatch.setattr(lab.jobs, "start", start)
        submit(lab, run, "token-2", now=NOW + 1)
        if ending == "a stop":
            lab.executions.mark_stopping(EXECUTION)

    def refuse(_: Mapping[str, Any]) -> None:
        take_over()
        raise Throttled("slow down")

    monkeypatch.setattr(lab.jobs, "start", refuse)
    submit_run(
        run,
        "token-1",
        services=lab.services,
        settings=replace(SETTINGS, seconds_between_starts=float(ending == "a stop")),
        now=NOW,
        sleep=take_over,
        clock=lambda: NOW,
    )
    ((name, row),) = lab.attempt_rows.items()
    assert [name] == list(lab.jobs.jobs)
    assert row.token == "token-2"
    assert lab.run_rows[run.run_id].jobs == frozenset({name})
    assert lab.money.exposed_usd == Decimal("0.92")


@pytest.mark.parametrize("at", ["hand_over", "start"])
def test_a_job_that_is_submitted_again_was_not_never_started(
    at: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sweep has found no such job: at ``hand_over`` it had read the row before."""
    lab, (run, *_) = make_lab()
    lab.jobs.refusals = [ServiceFault("503")]
    submit(lab, run)
    (name,) = lab.attempt_rows
    service: Any = lab.attempts if at == "hand_over" else lab.jobs
    call = getattr(service, at)
    describe = lab.jobs.describe

    def sweep_and_call(*given: Any, **named: Any) -> Any:
        if at == "start":
            finish_run(name, services=lab.services, now=NOW + 700)
            return call(*given, **named)
        taken = list[bool]()

        def describe_meanwhile(job_name: str) -> Any:
            taken.append(call(*given, **named))
            return describe(job_name)

        monkeypatch.setattr(service, at, call)
        monkeypatch.setattr(lab.jobs, "describe", describe_meanwhile)
        finish_run(name, services=lab.services, now=NOW + 700)
        return taken[0]

    monkeypatch.setattr(service, at, sweep_and_call)
    submit(lab, run, "token-2", now=NOW + 700)
    assert list(lab.jobs.jobs) == [name]
    assert lab.attempt(name).end is None
    assert lab.money.exposed_usd == Decimal("0.92")
    assert [token for token, *_ in lab.answers.given] == ["token-1"]


def test_taking_over_a_possibly_running_attempt_never_discards_it() -> None:
    lab, (run, *_) = make_lab()
    lab.jobs.refusals = [ServiceFault("503"), SlotUnavailable("full")]
    submit(lab, run)
    submit(lab, run, "token-2")
    assert [answer[1] for answer in lab.answers.given] == ["ServiceFault", "SlotUnavailable"]
    assert [row.token for row in lab.attempt_rows.values()] == ["token-2"]


def test_runs_keep_the_code_and_images_of_their_plan_after_a_redeployment() -> None:
    lab, (run, other, *_) = make_lab()
    lab.plan(images={"gpu": "me/efa:1"})
    requests = []
    for submitted, settings in ((run, SETTINGS), (other, REDEPLOYED)):
        submit_run(
            submitted, "token", services=lab.services, settings=settings, now=NOW, sleep=no_sleep
        )
        request = dict(lab.jobs.requests[-1])
        requests.append(
            (
                request["AlgorithmSpecification"],
                request["HyperParameters"]["sagemaker_submit_directory"],
            )
        )
    assert requests[0] == requests[1]
    assert requests[0][0]["TrainingImage"] == "me/efa:1"
    assert requests[0][1] == '"s3://results/code/execution-1/sourcedir.tar.gz"'


def test_the_cap_comes_from_the_table_and_not_from_the_suites_document() -> None:
    lab, (run, *_) = make_lab()
    lab.plan(max_usd=Decimal("0.59"))
    submit(lab, run)
    ((_, name, output),) = lab.answers.given
    assert (name, json.loads(output)["outcome"]) == ("success", "cost_stopped")
    assert "of limits.max_usd $0.59" in output
    assert lab.jobs.requests == []


def test_without_its_row_no_job_of_an_execution_starts() -> None:
    lab, (run, *_) = make_lab()
    lab.table.items.clear()
    submit(lab, run)
    ((_, _, output),) = lab.answers.given
    assert "expected the execution's row with the cap, found none" in output
