from decimal import Decimal
from typing import Any

import pytest

from tests.unit.lab_in_memory import EXECUTION, NOW, SETTINGS, MemoryLab, make_lab, no_sleep
from traindyno.core.costs.prices import cost_usd
from traindyno.core.jobs.attempt import Attempt
from traindyno.core.suite.suite import Run
from traindyno.lab.finish_run import finish_run
from traindyno.lab.reconcile_runs import stop_overruns
from traindyno.lab.record_run import record_run
from traindyno.lab.stop_runs import Pace
from traindyno.lab.submit_run import submit_run
from traindyno.store.attempts import AttemptRow

UNHURRIED = Pace(may_go_on=lambda: True, sleep=lambda _: None)
HOURLY_USD = Decimal("1.20")
LIMIT_SECONDS = 1800
MINIMUM_CHARGE_USD = cost_usd(60, 1, HOURLY_USD)


def limits(max_usd: float) -> dict[str, Any]:
    return {"max_usd": max_usd, "max_hours": 4, "max_job_seconds": LIMIT_SECONDS}


def ages_of(rows: list[AttemptRow], now: float) -> dict[str, float]:
    return {row.job_name: now - row.submitted_at for row in rows}


def look(lab: MemoryLab, now: float) -> int:
    rows = list(lab.attempts.list_open(EXECUTION))
    return stop_overruns(rows, ages=ages_of(rows, now), services=lab.services, now=now, pace=UNHURRIED)


def started(max_usd: float, trained_since: float | None = NOW) -> tuple[MemoryLab, str]:
    """One job at 1.20 USD an hour that may run half an hour, so 0.60 USD are held back for it."""
    lab, (run, *_) = make_lab(limits=limits(max_usd))
    submit_run(run, "token", services=lab.services, settings=SETTINGS, now=NOW, sleep=no_sleep)
    (name,) = lab.jobs.jobs
    if trained_since is not None:
        lab.jobs.jobs[name]["TrainingStartTime"] = trained_since
    return lab, name


def test_a_job_that_stays_within_what_is_held_back_is_not_even_described(monkeypatch: pytest.MonkeyPatch) -> None:
    lab, _ = started(0.60)
    monkeypatch.setattr(lab.jobs, "describe", None)
    # 1380 s, 300 s to the next look and 120 s to stop make 1800 s
    assert look(lab, NOW + 1380) == 0


def test_a_job_that_needs_more_gets_it_while_the_cap_has_room() -> None:
    lab, name = started(1.00)
    # 1800 s, 300 s and 120 s at 1.20 / 3600 USD
    assert look(lab, NOW + 1800) == 0
    assert lab.attempt(name).reserved_usd == lab.money.exposed_usd == Decimal("0.74")
    assert look(lab, NOW + 1800) == 0
    assert lab.money.exposed_usd == Decimal("0.74")


def test_job_that_needs_more_than_the_cap_has_is_stopped_and_its_run_says_so() -> None:
    lab, name = started(0.60)
    assert look(lab, NOW + 1381) == 1
    assert lab.jobs.stopped == [name]
    lab.jobs.end(name, "Stopped", billable_seconds=1500)
    finish_run(name, lab="traindyno", services=lab.services, now=NOW + 1500)
    run = lab.run_of(name)
    record_run(run, final=None, services=lab.services)
    assert lab.summary(run.run_id).outcome == "cost_stopped"
    assert lab.money.exposed_usd == lab.money.spent_usd == Decimal("0.50")


@pytest.mark.parametrize("trained_since", [None, NOW + 2000])
def test_waiting_for_capacity_costs_nothing(trained_since: float | None) -> None:
    lab, _ = started(0.60, trained_since)
    assert look(lab, NOW + 3000) == 0


def test_a_job_that_was_told_to_stop_is_not_told_again() -> None:
    lab, _ = started(0.60)
    assert look(lab, NOW + 1500) == 1
    assert look(lab, NOW + 1500) == 0


def test_reservation_for_a_job_that_ends_meanwhile_is_given_back() -> None:
    lab, name = started(1.00)
    rows = list(lab.attempts.list_open(EXECUTION))
    lab.change_attempt(name, end=Attempt(number=1, job_name=name))
    assert (
        stop_overruns(rows, ages=ages_of(rows, NOW + 1800), services=lab.services, now=NOW + 1800, pace=UNHURRIED) == 0
    )
    assert lab.money.exposed_usd == Decimal("0.60")


@pytest.mark.parametrize("cap_usd", ["1.30", "2.00", "3.17", "5.00"])
def test_suite_of_threefold_overruns_ends_within_its_cap_and_one_minimum_charge(cap_usd: str) -> None:
    lab, runs = make_lab(
        limits=limits(float(cap_usd)),
        matrix={"compiler": ["none", "inductor"], "batch_size_per_device": [1, 2, 4, 8]},
    )
    waiting = list(runs)
    for minute in range(0, 14_000, 60):
        now = NOW + minute
        waiting = submit_three(lab, waiting, now)
        if minute % 300 == 0:
            look(lab, now)
        end_those_that_are_done(lab, now)
    assert Decimal("0.60") < lab.money.spent_usd <= Decimal(cap_usd) + MINIMUM_CHARGE_USD
    assert not list(lab.attempts.list_open())


def submit_three(lab: MemoryLab, waiting: list[Run], now: float) -> list[Run]:
    """What isn't started now is asked for again."""
    for run in waiting[: 3 - len(list(lab.attempts.list_open()))]:
        before = set(lab.jobs.jobs)
        submit_run(run, f"token-{run.run_id}-{now}", services=lab.services, settings=SETTINGS, now=now, sleep=no_sleep)
        for name in set(lab.jobs.jobs) - before:
            lab.jobs.jobs[name]["TrainingStartTime"] = now
            waiting = [other for other in waiting if other is not run]
    return waiting


def end_those_that_are_done(lab: MemoryLab, now: float) -> None:
    """A job runs for three times its limit, or two minutes after it was told to stop."""
    for row in list(lab.attempts.list_open()):
        ran = now - row.submitted_at
        stopping = lab.jobs.stopped.count(row.job_name) > 0
        if stopping or ran >= 3 * LIMIT_SECONDS:
            status = "Stopped" if stopping else "Completed"
            lab.jobs.end(row.job_name, status, billable_seconds=int(ran) + 120 * stopping)
            finish_run(row.job_name, lab="traindyno", services=lab.services, now=now)
