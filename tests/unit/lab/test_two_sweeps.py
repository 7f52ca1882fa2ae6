"""Sweeps exclude each other: the handler's whole path, and what becomes of a lease."""

import logging
import time
from typing import Any

import pytest

from lambdas.reconcile_runs import handler as reconcile_runs
from tests.unit.lab_in_memory import (
    EXECUTION,
    NOW,
    SETTINGS,
    UNHURRIED,
    MemoryExecutions,
    MemoryLab,
    Unhurried,
    make_lab,
    no_sleep,
    set_environment,
)
from tests.unit.serving_in_memory import MemoryServing
from traindyno.aws import clients
from traindyno.core.lab_names import LEASE_SECONDS
from traindyno.lab.reconcile_runs import sweep as sweep_runs
from traindyno.lab.reconcile_runs import sweep_turn
from traindyno.lab.submit_run import submit_run
from traindyno.store.start_slots import LEASE_KEY

LATER = NOW + 500
# botocore's standard retries wait no longer between two requests
MOST_BACKOFF_SECONDS = 20


@pytest.fixture
def lab(monkeypatch: pytest.MonkeyPatch) -> MemoryLab:
    """A lab with one job that has ended without an event."""
    lab, (run, *_) = make_lab()
    submit_run(run, "token", services=lab.services, settings=SETTINGS, now=NOW, sleep=no_sleep)
    (name,) = lab.jobs.jobs
    lab.jobs.end(name, "Completed")
    executions = MemoryExecutions()
    executions.start(EXECUTION, {})
    set_environment(monkeypatch)
    monkeypatch.setattr(reconcile_runs, "connect", lambda _: lab.services)
    monkeypatch.setattr(reconcile_runs, "open_serving", lambda _: MemoryServing().serving)
    monkeypatch.setattr(reconcile_runs, "Executions", lambda *_: executions)
    monkeypatch.setattr(clients, "stepfunctions", lambda: None)
    monkeypatch.setattr(time, "time", lambda: LATER)
    return lab


def swept(lab: MemoryLab) -> bool:
    return bool(lab.answers.given)


def test_a_sweep_that_meets_another_one_does_nothing_says_so_and_succeeds(
    lab: MemoryLab, caplog: pytest.LogCaptureFixture
) -> None:
    assert lab.services.sweep_lease.take("another", now=LATER, seconds=LEASE_SECONDS)
    with caplog.at_level(logging.INFO):
        reconcile_runs.handle({}, Unhurried())
    assert not swept(lab)
    (record,) = [each for each in caplog.records if each.message == "ReconcileRuns"]
    assert (record.levelno, vars(record)["skipped"]) == (logging.INFO, "another sweep is running")


def test_a_sweep_within_a_sweep_is_skipped_and_the_next_one_is_not(
    lab: MemoryLab, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    whole, inner = sweep_runs, list[bool]()

    def overdue() -> list[int]:
        return [vars(each)["overdue"] for each in caplog.records if "overdue" in vars(each)]

    def sweep(**arguments: Any) -> Any:
        reconcile_runs.handle({}, Unhurried())
        inner.append(swept(lab))
        return whole(**arguments)

    monkeypatch.setattr(reconcile_runs, "sweep", sweep)
    caplog.set_level(logging.INFO)
    reconcile_runs.handle({}, Unhurried())
    assert inner == [False]
    assert swept(lab)
    monkeypatch.setattr(reconcile_runs, "sweep", whole)
    reconcile_runs.handle({}, Unhurried())
    assert overdue() == [1, 0]


def test_a_sweep_that_fails_gives_its_lease_back(
    lab: MemoryLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(**_: Any) -> None:
        raise OSError("no table")

    whole = sweep_runs
    monkeypatch.setattr(reconcile_runs, "sweep", fail)
    with pytest.raises(OSError, match="no table"):
        reconcile_runs.handle({}, Unhurried())
    monkeypatch.setattr(reconcile_runs, "sweep", whole)
    reconcile_runs.handle({}, Unhurried())
    assert swept(lab)


def test_the_lease_of_a_killed_sweep_expires(
    lab: MemoryLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab.services.sweep_lease.take("killed", now=LATER, seconds=LEASE_SECONDS)
    monkeypatch.setattr(time, "time", lambda: LATER + LEASE_SECONDS - 1)
    reconcile_runs.handle({}, Unhurried())
    assert not swept(lab)
    monkeypatch.setattr(time, "time", lambda: LATER + LEASE_SECONDS)
    reconcile_runs.handle({}, Unhurried())
    assert swept(lab)


def test_a_request_with_all_its_retries_does_not_outlast_the_lease() -> None:
    """A sweep may wait that long between two renewals, up to the last moment before it renews."""
    settings: Any = clients.CONFIG
    retries = settings.retries["total_max_attempts"] - 1
    backoffs = sum(min(2**each, MOST_BACKOFF_SECONDS) for each in range(retries))
    slowest = (1 + retries) * (settings.connect_timeout + settings.read_timeout) + backoffs
    lab, _ = make_lab()
    lease, clock = lab.services.sweep_lease, [NOW]
    with sweep_turn(lease, "slow", pace=UNHURRIED, clock=lambda: clock[0]) as turn:
        assert turn is not None
        for before in range(0, int(LEASE_SECONDS), 5):
            row = lab.table.items[LEASE_KEY["pk"], LEASE_KEY["sk"]]
            clock[0] = float(row["expires_at"]) - LEASE_SECONDS + before
            assert turn.may_go_on()
            assert not lease.take("another", now=clock[0] + slowest, seconds=LEASE_SECONDS), before


def test_a_long_sweep_keeps_its_lease_as_it_goes_on_and_stops_if_it_lost_it() -> None:
    lab, _ = make_lab()
    lease, clock = lab.services.sweep_lease, [NOW]
    with sweep_turn(lease, "long", pace=UNHURRIED, clock=lambda: clock[0]) as turn:
        assert turn is not None
        for _ in range(20):
            clock[0] += LEASE_SECONDS / 2
            assert turn.may_go_on()
            assert not lease.take(
                "another", now=clock[0] + LEASE_SECONDS / 3, seconds=LEASE_SECONDS
            )
        clock[0] += LEASE_SECONDS + 1
        assert lease.take("another", now=clock[0], seconds=LEASE_SECONDS)
        assert not turn.may_go_on()
    assert lease.renew("another", now=clock[0], seconds=LEASE_SECONDS)
