from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import pytest

from tests.unit.lab_in_memory import EXECUTION, NOW, SETTINGS, MemoryLab, make_lab, no_sleep
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.s3_keys import checkpoints_prefix, result_key
from traindyno.core.step_log.line import failure_text
from traindyno.lab.budget import hold_more
from traindyno.lab.finish_run import finish_run
from traindyno.lab.record_run import FinalOutcome, record_runs
from traindyno.lab.submit_run import submit_run

CAPACITY = "CapacityError: Unable to provision requested ML compute capacity."
CHAIN = {
    "max_usd": 50,
    "max_hours": 4,
    "max_job_seconds": 1800,
    "max_attempts": 2,
    "chain_jobs": True,
}
SAVED = {"trials": 2, "checkpoint_every_steps": 10}
AT_LIMIT = ("Stopped", {"secondary": "MaxRuntimeExceeded"}, "success")
# One answer of SageMaker to a spot interruption; the other is InProgress, Interrupted.
TOLD_TO_END = (
    "Failed",
    {"reason": f"AlgorithmError: {failure_text('stopped_by_user', 'told to end')}"},
    "ServiceFault",
)
WAITED = ("Stopped", {"secondary": "MaxWaitTimeExceeded"}, "CapacityUnavailable")
CHECKPOINT = "state/slot-0/marker.json"


def started(lab_and_runs: tuple[MemoryLab, list]) -> tuple[MemoryLab, str]:  # type: ignore[type-arg]
    lab, (run, *_) = lab_and_runs
    submit_run(run, "token-1", services=lab.services, settings=SETTINGS, now=NOW, sleep=no_sleep)
    (name,) = lab.jobs.jobs
    return lab, name


def finish(lab: MemoryLab, name: str, now: float = NOW + 500) -> None:
    finish_run(name, services=lab.services, now=now)


def test_a_completed_job_answers_its_task_with_its_name_alone() -> None:
    lab, name = started(make_lab())
    lab.jobs.end(name, "Completed")
    finish(lab, name)
    assert lab.answers.given == [("token-1", "success", f'{{"job_name": "{name}"}}')]
    assert not lab.attempt(name).is_open


def test_cost_of_a_job_replaces_its_reservation() -> None:
    lab, name = started(make_lab())
    lab.jobs.end(name, "Completed", billable_seconds=300)
    finish(lab, name)
    # 300 s x 1 instance x 1.20 USD / 3600 s = 0.10 USD
    assert lab.money.spent_usd == lab.money.exposed_usd == Decimal("0.10")


def test_a_shortage_is_a_named_failure_and_bills_nothing() -> None:
    lab, name = started(make_lab())
    lab.jobs.end(name, "Failed", reason=CAPACITY, billable_seconds=None)
    finish(lab, name)
    ((token, error, cause),) = lab.answers.given
    assert (token, error) == ("token-1", "CapacityUnavailable")
    assert "Unable to provision" in cause
    assert lab.money.exposed_usd == 0


def test_a_shortage_of_the_last_attempt_is_the_runs_result() -> None:
    limits = {"max_usd": 50, "max_hours": 4, "max_job_seconds": 1800, "max_attempts": 1}
    lab, name = started(make_lab(limits=limits))
    lab.jobs.end(name, "Failed", reason=CAPACITY)
    finish(lab, name)
    end = lab.attempt(name).end
    assert end is not None
    assert (end.outcome, end.error) == ("capacity_unavailable", "CapacityUnavailable")
    assert lab.answers.given[0][1] == "success"


@pytest.mark.parametrize(
    ("limits", "left", "is_chained"),
    [
        (CHAIN, CHECKPOINT, True),
        (CHAIN, "step_log/job/rank-00000.1.jsonl", False),
        ({**CHAIN, "chain_jobs": False}, CHECKPOINT, False),
    ],
    ids=["chained", "without a checkpoint", "not chained"],
)
@pytest.mark.parametrize(
    "ended", [AT_LIMIT, TOLD_TO_END, WAITED], ids=["at its limit", "told to end", "waited"]
)
def test_another_job_continues_from_the_checkpoint_of_a_cut_off_one(
    ended: tuple[str, dict[str, Any], str], limits: dict[str, Any], left: str, is_chained: bool
) -> None:
    status, described, otherwise = ended
    answer = "JobTimeUsed" if is_chained else otherwise
    lab, runs = make_lab(limits=limits, measurement=SAVED)
    run = runs[0]
    lab.bucket.write(f"{checkpoints_prefix(EXECUTION, run.run_id)}{left}", b"{}", "")
    for number in range(
        1, 5
    ):  # two attempts are allowed, and those that used their time don't count
        submit_run(
            run,
            f"token-{number}",
            services=lab.services,
            settings=SETTINGS,
            now=NOW,
            sleep=no_sleep,
        )
        name = f"{next(iter(lab.jobs.jobs)).removesuffix('1')}{number}"
        lab.jobs.end(name, status, **described)
        finish(lab, name)
        assert lab.answers.given[-1][:2] == (f"token-{number}", answer)
        end = lab.attempt(name).end
        assert end is not None
        assert end.outcome == (Outcome.TIMED_OUT if answer == "success" else None)
        if not is_chained:
            break


def test_the_same_event_twice_is_answered_once() -> None:
    lab, name = started(make_lab())
    lab.jobs.end(name, "Completed")
    finish(lab, name)
    finish(lab, name)
    assert len(lab.answers.given) == 1
    assert lab.money.spent_usd == Decimal("0.10")


def test_two_deliveries_at_once_are_answered_once(monkeypatch: pytest.MonkeyPatch) -> None:
    lab, name = started(make_lab())
    lab.jobs.end(name, "Completed")
    before = lab.attempt(name)
    find = lab.attempts.find
    finish(lab, name)
    stale = [before]  # the second had read the row before the first wrote
    monkeypatch.setattr(
        lab.attempts, "find", lambda job_name: stale.pop() if stale else find(job_name)
    )
    finish(lab, name)
    assert len(lab.answers.given) == 1
    assert not stale
    assert lab.money.spent_usd == lab.money.exposed_usd == Decimal("0.10")


def test_a_job_with_a_growing_reservation_settles_all_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lab, name = started(make_lab())
    lab.jobs.end(name, "Completed")
    before = lab.attempt(name)
    find = lab.attempts.find
    assert hold_more(before, Decimal("0.90"), services=lab.services)
    stale = [before]
    monkeypatch.setattr(
        lab.attempts, "find", lambda job_name: stale.pop() if stale else find(job_name)
    )
    finish(lab, name)
    assert not stale
    assert lab.money.spent_usd == lab.money.exposed_usd == Decimal("0.10")


def test_an_end_told_before_the_submission_returns_is_not_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lab, (run, *_) = make_lab()
    start = lab.jobs.start

    def start_and_end_at_once(request: Mapping[str, Any]) -> None:
        start(request)
        lab.jobs.end(request["TrainingJobName"], "Failed", reason=CAPACITY)
        finish(lab, request["TrainingJobName"])

    monkeypatch.setattr(lab.jobs, "start", start_and_end_at_once)
    submit_run(run, "token-1", services=lab.services, settings=SETTINGS, now=NOW, sleep=no_sleep)
    assert [answer[:2] for answer in lab.answers.given] == [("token-1", "CapacityUnavailable")]
    assert not list(lab.attempts.list_open())


def test_an_event_after_the_run_was_recorded_adds_nothing_to_it() -> None:
    lab, name = started(make_lab())
    run = lab.run_of(name)
    record_runs(
        run, final=FinalOutcome(outcome=Outcome.TIMED_OUT, message=None), services=lab.services
    )
    lab.answers.gone = {"token-1"}
    lab.jobs.end(name, "Completed")
    finish(lab, name)
    assert lab.summary(run.run_id).outcome == "timed_out"
    assert lab.objects.writes[result_key(EXECUTION, run.run_id)] == 1
    assert not lab.attempt(name).is_open


def test_an_event_of_a_working_job_or_of_another_lab_changes_nothing() -> None:
    lab, name = started(make_lab())
    finish(lab, name)
    finish(lab, "other-lab-job")
    assert lab.answers.given == []
    assert lab.attempt(name).end is None


def test_end_of_a_job_answers_the_latest_token() -> None:
    lab, name = started(make_lab())
    lab.attempts.hand_over(name, "token-2", now=NOW + 1)
    lab.jobs.end(name, "Completed")
    finish(lab, name)
    assert [answer[0] for answer in lab.answers.given] == ["token-2"]


def test_a_run_of_a_stopped_execution_is_recorded_though_nobody_waits() -> None:
    lab, name = started(make_lab())
    run_id = lab.run_of(name).run_id
    lab.executions.mark_stopping(EXECUTION)
    lab.answers.gone = {"token-1"}
    lab.jobs.end(name, "Stopped")
    finish(lab, name)
    assert lab.summary(run_id).outcome == "stopped_by_user"
    assert not lab.attempt(name).is_open


def test_an_end_unheard_by_any_task_stays_open_for_the_sweep() -> None:
    """The execution still runs, so that a task with a new token will hear it."""
    lab, name = started(make_lab())
    lab.answers.gone = {"token-1"}
    lab.jobs.end(name, "Completed")
    finish(lab, name)
    assert lab.attempt(name).is_open
    lab.change_attempt(name, token="token-2")
    finish(lab, name)
    assert lab.answers.given[0][0] == "token-2"
    assert not lab.attempt(name).is_open


def test_a_job_never_started_becomes_the_next_attempt_after_a_while() -> None:
    lab, name = started(make_lab())
    del lab.jobs.jobs[name]
    finish(lab, name, now=NOW + 599)
    assert lab.answers.given == []
    finish(lab, name, now=NOW + 601)
    assert lab.answers.given[0][1] == "ServiceFault"
    assert lab.money.exposed_usd == 0
