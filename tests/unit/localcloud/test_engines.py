"""The engines under faults of their own: no job waits for ever, and no thread ends in silence."""

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from localcloud.sagemaker_service.clock import SystemClock, VirtualClock
from localcloud.sagemaker_service.host.process_engine import waiting_message
from localcloud.sagemaker_service.jobs.faults import FaultInjector
from localcloud.sagemaker_service.jobs.job import Engine
from localcloud.sagemaker_service.jobs.job_store import JobStore
from localcloud.sagemaker_service.jobs.job_view import described
from localcloud.sagemaker_service.replay.replay_engine import ReplayEngine
from localcloud.sagemaker_service.service_health import RETRY_SECONDS, Worker
from tests.unit.localcloud.engine_samples import add_job, ended_job, process_engine, stored, until
from traindyno.sagemaker.job_description import read_job_end, read_wait
from traindyno.sagemaker.request import EXECUTION_TAG


class Transfer:
    """It replaces S3 and raises what the test wants."""

    def __init__(self, error: BaseException) -> None:
        self.error = error
        self.before_raise: Callable[[], object] = lambda: None

    def download(self, *_: Any) -> Path:
        self.before_raise()
        raise self.error


class Files:
    def __init__(self, error: BaseException) -> None:
        self.error = error

    def write(self, *_: Any, **__: Any) -> int:
        raise self.error


def test_unexpected_error_fails_its_job_with_the_text_and_the_next_job_is_taken(
    store: JobStore, tmp_path: Path
) -> None:
    transfer = Transfer(TypeError("extractall() got an argument 'filter'"))
    engine = process_engine(store, tmp_path, transfer=transfer)
    for name in ("first", "second"):
        add_job(store, name)
    engine.start()
    for name in ("first", "second"):
        job = ended_job(store, name)
        assert job.status == "Failed"
        assert str(job.failure_reason).startswith("InternalServerError")
        assert "TypeError: extractall() got an argument 'filter'" in str(job.failure_reason)
    engine.close()


def test_time_in_the_queue_of_the_machine_is_no_phase_of_a_job(
    store: JobStore, tmp_path: Path
) -> None:
    """The phases are a cell's time, and the queue is no property of a cell."""
    transfer = Transfer(TypeError("the test's"))
    engine = process_engine(store, tmp_path, transfer=transfer)
    engine.start()
    add_job(store, "first")
    has_begun = threading.Event()
    may_end = threading.Event()

    def hold() -> None:
        has_begun.set()
        may_end.wait(10)

    transfer.before_raise = hold
    engine.wake("first")
    assert has_begun.wait(10)
    add_job(store, "second")
    engine.wake("second")
    message = waiting_message(replace(stored(store, "first"), tags={EXECUTION_TAG: "r-hf"}))
    assert message.startswith("waiting for the machine, behind r-hf, which has it since ")
    waits = read_wait(described(stored(store, "second")))
    assert waits == message.replace("r-hf", "another job")
    assert read_wait(described(stored(store, "first"))) is None
    may_end.set()
    first = ended_job(store, "first")
    second = ended_job(store, "second")
    began_ms = second.transitions[0].start_ms
    ended_ms = second.transitions[-1].start_ms
    assert began_ms >= first.transitions[-1].start_ms
    seconds = sum(phase.seconds for phase in read_job_end(described(second)).phases)
    assert seconds == pytest.approx((ended_ms - began_ms) / 1000, abs=1e-6)
    engine.close()


def test_running_job_waits_for_its_end_while_the_store_is_read_only(
    store: JobStore, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    transfer = Transfer(OSError(28, "No space left on device"))
    engine = process_engine(store, tmp_path, transfer=transfer)
    connection = store._connection
    transfer.before_raise = lambda: connection.execute("pragma query_only = 1")
    add_job(store, "running")
    engine.start()
    until(lambda: "the end of a job was not stored" in caplog.text)
    assert stored(store, "running").status == "InProgress"
    transfer.before_raise = lambda: None
    connection.execute("pragma query_only = 0")
    add_job(store, "next")
    for name in ("running", "next"):
        assert "No space left on device" in str(ended_job(store, name).failure_reason)
    engine.close()


def test_a_simulated_job_unable_to_play_fails_with_the_text(store: JobStore) -> None:
    engine = ReplayEngine(
        store=store,
        files=Files(ValueError("a step log of no steps")),  # type: ignore[arg-type]
        clock=VirtualClock(start_ms=SystemClock().now_ms(), speed_up=1e6),
        faults=FaultInjector(store),
        traces=(),
        may_jump=lambda: True,
    )
    add_job(store, "simulated", Engine.REPLAY)
    engine.start()
    job = ended_job(store, "simulated")
    engine.close()
    assert (job.status, job.engine) == ("Failed", "replay")
    assert "ValueError: a step log of no steps" in str(job.failure_reason)


def test_worker_repeats_its_step_after_an_error_and_waits_without_work() -> None:
    outcomes: list[bool | Exception] = [True, ValueError("one bad job"), False, False]
    steps: list[float] = []

    def step() -> bool:
        steps.append(time.monotonic())
        outcome = outcomes[len(steps) - 1]
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    worker = Worker("part", step)
    worker.start()
    until(lambda: len(steps) == 3)
    assert steps[2] - steps[1] >= RETRY_SECONDS
    time.sleep(0.1)
    assert len(steps) == 3
    worker.wake()
    until(lambda: len(steps) == 4)
    worker.close()
    assert len(steps) == 4


def test_worker_ends_if_it_is_closed_before_its_step() -> None:
    def step() -> bool:
        worker.ending.set()  # as by a ``close`` whose ``wake`` came before the step
        return False

    worker = Worker("part", step)
    worker.start()
    worker.join(5)
    assert not worker.is_alive()
