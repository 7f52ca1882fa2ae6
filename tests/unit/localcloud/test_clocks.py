"""A wall clock that is set, a machine that sleeps, a service that is killed: no bill exceeds the
time that passed.
"""

import random
import sqlite3
from dataclasses import replace
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from localcloud.sagemaker_service import clock as clock_module
from localcloud.sagemaker_service import service_health
from localcloud.sagemaker_service.clock import SystemClock
from localcloud.sagemaker_service.host.job_run import failed
from localcloud.sagemaker_service.host.process_engine import _latest_ms
from localcloud.sagemaker_service.jobs.job import SecondaryStatus, TrainingJob, billed_ms, moved
from tests.unit.localcloud.engine_samples import add_job, open_store, process_engine, stored

HOUR_MS = 3_600_000
LIMIT = {"MaxRuntimeInSeconds": 600}


class Machine(SimpleNamespace):
    """Replaces ``time``: its clocks move only when the test moves them."""

    wall_ms = 1_800_000_000_000
    monotonic_ms = 500_000
    within_ms: dict[str, int]  # nanoseconds

    def time_ns(self) -> int:
        return self.wall_ms * 1_000_000 + self.within_ms["wall"]

    def monotonic_ns(self) -> int:
        return self.monotonic_ms * 1_000_000 + self.within_ms["monotonic"]

    def pass_ms(self, milliseconds: int) -> None:
        self.wall_ms += milliseconds
        self.monotonic_ms += milliseconds


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    moved_by_test = Machine(within_ms={"wall": 700_000, "monotonic": 400_000})
    monkeypatch.setattr(clock_module, "time", moved_by_test)
    return moved_by_test


def test_during_jobs_only_the_passing_time_counts(machine: Machine) -> None:
    dice = random.Random(0)
    clock = SystemClock()
    for _ in range(20):
        machine.wall_ms += dice.choice([-HOUR_MS, 0, HOUR_MS])
        assert clock.now_ms() == machine.wall_ms
        with clock.running():
            began = clock.now_ms()
            passed = 0
            assert began == machine.wall_ms
            for _ in range(20):
                machine.wall_ms += dice.randrange(
                    -HOUR_MS, HOUR_MS
                )  # it is set, or the machine sleeps
                step = dice.randrange(10_000)
                machine.pass_ms(step)
                passed += step
                assert clock.now_ms() == began + passed
    with clock.running(not_before_ms=machine.wall_ms + HOUR_MS):
        assert clock.now_ms() == machine.wall_ms + HOUR_MS


def test_no_time_after_a_run_is_before_its_end(machine: Machine) -> None:
    """Both clocks tick at different parts of a millisecond."""
    clock = SystemClock()
    for machine.within_ms["wall"], machine.within_ms["monotonic"] in product(
        (0, 300_000, 999_999), repeat=2
    ):
        with clock.running():
            for clock_name in machine.within_ms:
                machine.within_ms[clock_name] += 700_000
            ended_ms = clock.now_ms()
        assert clock.now_ms() == ended_ms


def test_a_killed_job_is_billed_at_most_its_limit_without_pauses(tmp_path: Path) -> None:
    """Limit 600 s: 300 s billed, 400 s waiting, then 200 s billed until the kill; all 500 s are
    billed.
    """
    job = replace(
        add_job(open_store(tmp_path), "killed", now_ms=0, StoppingCondition=LIMIT),
        training_start_ms=0,
    )
    for status, now_ms in ((SecondaryStatus.TRAINING, 0), (SecondaryStatus.INTERRUPTED, 300_000)):
        job = moved(job, status, now_ms=now_ms)
    job = moved(job, SecondaryStatus.TRAINING, now_ms=700_000)
    assert _latest_ms(job, 900_000) == 900_000
    assert _latest_ms(job, 5_000_000) == 1_000_000
    assert _latest_ms(job, 0) == 700_000


def test_an_end_stored_late_is_billed_to_its_moment(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An hour passes before the store takes the end, as on a full disk."""
    monkeypatch.setattr(service_health, "RETRY_SECONDS", 0.01)
    store = open_store(tmp_path)
    clock = SystemClock()
    engine = process_engine(store, tmp_path, clock=clock)
    now_ms = clock.now_ms()
    job = moved(add_job(store, "late", now_ms=now_ms), SecondaryStatus.TRAINING, now_ms=now_ms)
    store.change("late", lambda _: replace(job, claimed=True, training_start_ms=now_ms))
    change = store.change
    refusals = [1, 2, 3]

    def change_later(*arguments: Any) -> TrainingJob:
        if refusals:
            refusals.pop()
            machine.pass_ms(HOUR_MS)
            raise sqlite3.OperationalError("database or disk is full")
        return change(*arguments)

    monkeypatch.setattr(store, "change", change_later)
    with clock.running():
        machine.pass_ms(2_000)
        engine._settle("late", failed("AlgorithmError"))
    assert billed_ms(stored(store, "late")) == 2_000
