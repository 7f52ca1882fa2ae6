from dataclasses import replace
from typing import Any

import pytest

from tests.unit.lab_in_memory import (
    EXECUTION,
    NOW,
    PLANNED,
    SETTINGS,
    UNHURRIED,
    MemoryExecutions,
    MemoryLab,
    make_lab,
    no_sleep,
)
from traindyno.aws.executions import RUNNING
from traindyno.core.errors import Throttled
from traindyno.core.suite.suite import Run
from traindyno.lab.reconcile_runs import Swept, sweep
from traindyno.lab.stop_runs import RequestPace
from traindyno.lab.submit_run import submit_run
from traindyno.store.results_bucket import ObjectMissing

FORGOTTEN = "FORGOTTEN"  # Step Functions deletes an execution 90 days after its end


def lab_with_jobs(count: int) -> tuple[MemoryLab, list[str]]:
    lab, runs = make_lab()
    for number, run in enumerate(runs[:count]):
        submit_run(
            run,
            f"token-{number}",
            services=lab.services,
            settings=SETTINGS,
            now=NOW,
            sleep=no_sleep,
        )
    return lab, list(lab.jobs.jobs)


def look(
    lab: MemoryLab, *, status: str = RUNNING, now: float = NOW + 500, pace: RequestPace = UNHURRIED
) -> Swept:
    executions = MemoryExecutions()
    if status != FORGOTTEN:
        executions.start(EXECUTION, {})
    if status not in {RUNNING, FORGOTTEN}:
        executions.end(EXECUTION, status)
    return sweep(lab="traindyno", services=lab.services, executions=executions, now=now, pace=pace)


def test_a_job_with_an_unheard_end_is_finished_and_a_working_one_is_left_alone() -> None:
    lab, (ended, working) = lab_with_jobs(2)
    lab.jobs.end(ended, "Completed")
    assert look(lab) == Swept(open=2, overdue=1, left=0, stopped=0)
    assert [answer[0] for answer in lab.answers.given] == ["token-0"]
    assert lab.attempt(working).end is None


def test_job_submitted_a_moment_ago_is_not_looked_at() -> None:
    lab, (name,) = lab_with_jobs(1)
    lab.jobs.end(name, "Completed")
    assert look(lab, now=NOW + 19).open == 0
    assert lab.answers.given == []


@pytest.mark.parametrize("status", ["ABORTED", "FAILED", "TIMED_OUT", "SUCCEEDED", FORGOTTEN])
def test_jobs_of_an_ended_execution_are_stopped_and_it_starts_no_more(status: str) -> None:
    lab, names = lab_with_jobs(2)
    assert look(lab, status=status).stopped == 2
    assert lab.jobs.stopped == names
    execution = lab.executions.find(EXECUTION)
    assert execution is not None and execution.is_stopping


def test_jobs_past_the_suites_hours_are_stopped_as_timed_out() -> None:
    lab, (name,) = lab_with_jobs(1)
    lab.plan(latest_end=NOW + 1000)
    assert look(lab, now=NOW + 999).stopped == 0
    assert look(lab, now=NOW + 1001).stopped == 1
    lab.jobs.end(name, "Stopped")
    look(lab, now=NOW + 1002)
    end = lab.attempt(name).end
    assert end is not None
    assert end.outcome == "timed_out"


def test_a_sweep_without_time_says_its_rest() -> None:
    lab, (first, second) = lab_with_jobs(2)
    lab.jobs.end(first, "Completed")
    lab.jobs.end(second, "Completed")
    looks = iter([True, False])
    assert (
        look(lab, pace=RequestPace(may_go_on=lambda: next(looks), sleep=lambda _: None)).left == 1
    )


def test_an_unfinishable_execution_stops_the_sweep_of_no_other() -> None:
    """The suite of one execution is gone and StopTrainingJob refuses one of its jobs; the sweep
    still raises.
    """
    lab, names = lab_with_jobs(3)
    poisoned, *others = names
    first = lab.attempt(poisoned)
    assert isinstance(first.owner, Run)
    lab.change_attempt(poisoned, owner=replace(first.owner, execution_id="aa-poisoned"))
    lab.table.items["execution#aa-poisoned", "suite"] = {
        **replace(PLANNED, execution_id="aa-poisoned", is_stopping=True).to_item()
    }
    for name in names:
        lab.jobs.end(name, "Completed")
    lab.answers.gone = {"token-0"}
    swept = look(lab)
    assert [type(failure) for failure in swept.failures] == [ObjectMissing]
    assert [answer[0] for answer in lab.answers.given] == ["token-1", "token-2"]
    assert all(lab.attempt(name).end for name in others)


def test_a_throttled_row_leaves_the_later_ones_their_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    lab, names = lab_with_jobs(3)
    for name in names:
        lab.jobs.end(name, "Completed")
    describe = lab.jobs.describe
    seen: list[str] = []

    def throttled_first(name: str) -> Any:
        seen.append(name)
        if len(seen) == 1:
            raise Throttled("rate")
        return describe(name)

    monkeypatch.setattr(lab.jobs, "describe", throttled_first)
    swept = look(lab)
    assert [str(failure) for failure in swept.failures] == ["rate"]
    assert len(lab.answers.given) == 2


def test_each_sweep_takes_the_rows_in_another_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sweep whose time ends early would otherwise leave the same rows each time."""
    lab, names = lab_with_jobs(4)
    for name in names:
        lab.jobs.end(name, "Completed")
    firsts: set[str] = set()
    monkeypatch.setattr(lab.jobs, "describe", firsts.add)
    for minute in range(30):
        once = iter([True, False])
        look(
            lab,
            now=NOW + 500 + minute,
            pace=RequestPace(may_go_on=once.__next__, sleep=lambda _: None),
        )
    assert firsts == {*names}


def test_one_unstoppable_job_leaves_none_of_the_others_running() -> None:
    lab, names = lab_with_jobs(3)
    lab.jobs.stop_refusals = [Throttled("rate"), Throttled("rate")]
    swept = look(lab, status="ABORTED")
    assert len(lab.jobs.stopped) == len(names) - 1
    assert [str(failure) for failure in swept.failures] == ["rate"]
