"""CreateTrainingJob stays below one request per second for the account, however many runs ask at
once.
"""

import heapq
import json
from collections import Counter
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pytest

from tests.unit.lab_in_memory import NOW, SETTINGS, MemoryLab, make_lab
from tests.unit.stubbed import stubbed_table
from traindyno.aws.table import Table
from traindyno.lab.stop_runs import free_start_slots
from traindyno.lab.submit_run import LONGEST_SLEEP_SECONDS, submit_run
from traindyno.store.start_slots import StartSlots

BETWEEN = 1.05
PACED = replace(SETTINGS, seconds_between_starts=BETWEEN)


def many_runs(count: int) -> tuple[MemoryLab, list[Any]]:
    """One cell of the suite has so many trials, under a cap that lets all of them start."""
    lab, (run, *_) = make_lab(
        limits={"max_usd": 1_000_000, "max_hours": 24, "max_job_seconds": 1800}
    )
    return lab, [
        replace(run, run_id=f"run-{number}", trial=number) for number in range(1, count + 1)
    ]


def submit(
    lab: MemoryLab,
    run: Any,
    token: str,
    now: float,
    slept: list[float],
    *,
    late_seconds: float = 0.0,
) -> None:
    """Submits a run; the function takes ``late_seconds`` from its beginning to its request."""
    submit_run(
        run,
        token,
        services=lab.services,
        settings=PACED,
        now=now,
        sleep=slept.append,
        clock=lambda: now + late_seconds + sum(slept),
    )


def play(lab: MemoryLab, runs: list[Any]) -> tuple[list[float], Counter[str]]:
    """All runs ask at once; each that is told to come later does.

    When jobs were started, and submissions by run.
    """
    waiting = [(NOW, number) for number in range(len(runs))]
    started = list[float]()
    submissions = Counter[str]()
    while waiting:
        now, number = heapq.heappop(waiting)
        slept = list[float]()
        run = runs[number]
        before = len(lab.jobs.jobs)
        submissions[run.run_id] += 1
        submit(lab, run, f"token-{number}", now, slept)
        if len(lab.jobs.jobs) > before:
            started.append(now + sum(slept))
        else:
            token, error, cause = lab.answers.given.pop()
            assert (token, error) == (f"token-{number}", "StartLater")
            heapq.heappush(
                waiting, (datetime.fromisoformat(json.loads(cause)["at"]).timestamp(), number)
            )
    return started, submissions


def test_10000_starts_stay_below_one_per_second() -> None:
    """Each run waits in the state machine at most once."""
    lab, runs = many_runs(10_000)
    started, submissions = play(lab, runs)
    assert len(lab.jobs.jobs) == 10_000
    ordered = sorted(started)
    spread = ordered[-1] - ordered[0]
    assert (len(ordered) - 1) / spread < 1
    # The state machine waits in whole seconds, so that some start a little late.
    assert min(later - earlier for earlier, later in pairwise(ordered)) > 0.9
    # SubmitRun, SubmitRunLater, SubmitRun and RecordRun: four transitions of the eight that a run
    # may cost
    assert max(submissions.values()) == 2


def test_a_near_turn_is_waited_for_in_the_function() -> None:
    lab, runs = many_runs(6)
    started, submissions = play(lab, runs)
    assert [round(at - NOW, 2) for at in started] == [0, 1.05, 2.1, 3.15, 4.2, 6]
    assert BETWEEN * 5 > LONGEST_SLEEP_SECONDS
    assert submissions["run-6"] == 2


def test_a_run_missing_its_turn_takes_another() -> None:
    lab, (run, *_) = many_runs(1)
    lab.runs.note_start(run.execution_id, run.run_id, NOW - 100)
    lab.next_start = NOW + 3
    slept: list[float] = []
    submit(lab, run, "token", NOW, slept)
    assert slept == [3]
    assert len(lab.jobs.jobs) == 1


def test_late_function_takes_another_turn_and_does_not_meet_the_next_one() -> None:
    lab, (run, *_) = many_runs(1)
    lab.next_start = NOW + 1
    slept: list[float] = []
    submit(lab, run, "token", NOW, slept, late_seconds=3.0)
    # its turn was at 1 s, and others had theirs at 2.05 s: the next is at once, at 3 s
    assert slept == [0]
    assert lab.next_start == NOW + 3 + BETWEEN
    in_time: list[float] = []
    submit(lab, replace(run, run_id="run-2"), "token-2", NOW + 3, in_time, late_seconds=0.5)
    assert in_time == [pytest.approx(BETWEEN - 0.5)]


def test_unused_turns_of_an_execution_are_freed_and_anothers_stay() -> None:
    lab, (run, *_) = many_runs(1)
    submit(lab, run, "token", NOW, [])
    lab.next_start = NOW + 100
    free_start_slots("another-execution", services=lab.services, now=NOW + 1)
    assert lab.next_start == NOW + 100
    free_start_slots(run.execution_id, services=lab.services, now=NOW + 1)
    assert lab.next_start == NOW + 1


def test_without_a_limit_there_are_no_turns() -> None:
    lab, (run, *_) = many_runs(1)
    lab.next_start = NOW + 100
    submit_run(
        run, "token", services=lab.services, settings=SETTINGS, now=NOW, sleep=lambda seconds: None
    )
    assert len(lab.jobs.jobs) == 1


def asked(value: str, condition: str) -> dict[str, Any]:
    return {
        "TableName": "rows",
        "Key": {"pk": "start-slots#CreateTrainingJob", "sk": "lab"},
        "UpdateExpression": f"SET next_at = {value}",
        "ConditionExpression": condition,
        "ExpressionAttributeValues": {":now": Decimal("100.5"), ":between": Decimal("1.05")},
        "ReturnValues": "ALL_NEW",
    }


def test_a_turn_is_one_conditional_write_against_double_turns() -> None:
    queued = "next_at > :now"
    free = "attribute_not_exists(next_at) OR next_at <= :now"
    with stubbed_table() as (table, stubber):
        stubber.add_response(
            "update_item",
            {"Attributes": {"next_at": {"N": "107.05"}}},
            asked("next_at + :between", queued),
        )
        assert StartSlots(Table(table)).reserve(now=100.5, seconds_between=BETWEEN) == 106.0
        stubber.add_client_error(
            "update_item",
            "ConditionalCheckFailedException",
            expected_params=asked("next_at + :between", queued),
        )
        stubber.add_response(
            "update_item",
            {"Attributes": {"next_at": {"N": "101.55"}}},
            asked(":now + :between", free),
        )
        assert StartSlots(Table(table)).reserve(now=100.5, seconds_between=BETWEEN) == 100.5
