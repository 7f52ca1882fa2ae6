"""The engines under faults of their own: no job waits for ever, and no thread ends in silence."""

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from localcloud.sagemaker_service.clock import SystemClock, VirtualClock
from localcloud.sagemaker_service.host.process_engine import WAITING, ProcessEngine
from localcloud.sagemaker_service.jobs.faults import FaultInjector
from localcloud.sagemaker_service.jobs.job import TERMINAL, Engine, TrainingJob, new_job
from localcloud.sagemaker_service.jobs.job_store import JobStore
from localcloud.sagemaker_service.jobs.job_view import described
from localcloud.sagemaker_service.replay.replay_engine import ReplayEngine
from localcloud.sagemaker_service.service_health import (
    RETRY_SECONDS,
    ServiceHealth,
    Worker,
)
from localcloud.sagemaker_service.settings import ServiceSettings
from traindyno.sagemaker.job_description import read_job_end

REQUEST: dict[str, Any] = {
    "AlgorithmSpecification": {"TrainingImage": "pytorch"},
    "OutputDataConfig": {"S3OutputPath": "s3://lab/out/"},
    "ResourceConfig": {"InstanceType": "local.cpu", "InstanceCount": 1},
    "HyperParameters": {"sagemaker_program": '"train.py"', "sagemaker_submit_directory": '"s3://lab/code.tar.gz"'},
}


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


@pytest.fixture
def store(tmp_path: Path) -> Iterator[JobStore]:
    opened = JobStore(tmp_path / "state.sqlite", lambda _: [])
    yield opened
    opened.close()


@pytest.fixture
def health() -> ServiceHealth:
    return ServiceHealth()


def add_job(store: JobStore, name: str, engine: Engine = Engine.PROCESS) -> TrainingJob:
    request = {**REQUEST, "TrainingJobName": name}
    job = new_job(request, arn=name, engine=engine, tags={}, now_ms=SystemClock().now_ms(), message="")
    store.add(job)
    return job


def end_of(store: JobStore, name: str, seconds: float = 10) -> TrainingJob:
    until(lambda: (store.get(name) or pytest.fail()).status in TERMINAL, seconds)
    job = store.get(name)
    assert job is not None
    return job


def until(is_true: Callable[[], bool], seconds: float = 10) -> None:
    deadline = time.monotonic() + seconds
    while not is_true():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def process_engine(store: JobStore, health: ServiceHealth, transfer: Transfer, folder: Path) -> ProcessEngine:
    return ProcessEngine(
        store=store,
        transfer=transfer,  # type: ignore[arg-type]
        log_client=None,  # type: ignore[arg-type]
        settings=ServiceSettings(port=0, state_folder=folder, aws_endpoint="", python="", cores=(0,)),
        clock=SystemClock(),
        gpu_count=0,
        faults=FaultInjector(store),
        health=health,
    )


def test_unexpected_error_fails_its_job_with_the_text_and_the_next_job_is_taken(
    store: JobStore, health: ServiceHealth, tmp_path: Path
) -> None:
    engine = process_engine(store, health, Transfer(TypeError("extractall() got an argument 'filter'")), tmp_path)
    for name in ("first", "second"):
        add_job(store, name)
    engine.start()
    for name in ("first", "second"):
        job = end_of(store, name)
        assert job.status == "Failed"
        assert str(job.failure_reason).startswith("InternalServerError")
        assert "TypeError: extractall() got an argument 'filter'" in str(job.failure_reason)
    assert health.problems == {}
    engine.close()


def test_time_in_the_queue_of_the_machine_is_no_phase_of_a_job(
    store: JobStore, health: ServiceHealth, tmp_path: Path
) -> None:
    """The phases are a cell's time, and the queue is no property of a cell."""
    transfer = Transfer(TypeError("the test's"))
    engine = process_engine(store, health, transfer, tmp_path)
    engine.start()
    add_job(store, "first")
    has_begun, may_end = threading.Event(), threading.Event()

    def hold() -> None:
        has_begun.set()
        may_end.wait(10)

    transfer.before_raise = hold
    engine.wake("first")
    assert has_begun.wait(10)
    add_job(store, "second")
    engine.wake("second")
    assert (store.get("second") or pytest.fail()).transitions[-1].message == WAITING
    may_end.set()
    first, second = end_of(store, "first"), end_of(store, "second")
    began_ms, ended_ms = second.transitions[0].start_ms, second.transitions[-1].start_ms
    assert began_ms >= first.transitions[-1].start_ms
    seconds = sum(phase.seconds for phase in read_job_end(described(second)).phases)
    assert seconds == pytest.approx((ended_ms - began_ms) / 1000, abs=1e-6)
    engine.close()


def test_a_dead_engine_is_told_by_health_and_every_waiting_job_ends(
    store: JobStore, health: ServiceHealth, tmp_path: Path
) -> None:
    engine = process_engine(store, health, Transfer(SystemExit("out of threads")), tmp_path)
    for name in ("running", "waiting"):
        add_job(store, name)
    engine.start()
    for name in ("running", "waiting"):
        assert "InternalServerError" in str(end_of(store, name).failure_reason)
    assert health.problems == {"process engine has ended": "SystemExit: out of threads"}
    add_job(store, "late")
    engine.wake("late")
    assert "out of threads" in str(end_of(store, "late").failure_reason)


def test_running_job_waits_for_its_end_while_the_store_is_read_only(
    store: JobStore, health: ServiceHealth, tmp_path: Path
) -> None:
    """The health of the service says so."""
    transfer = Transfer(OSError(28, "No space left on device"))
    engine = process_engine(store, health, transfer, tmp_path)
    connection = store._connection
    transfer.before_raise = lambda: connection.execute("pragma query_only = 1")
    add_job(store, "running")
    engine.start()
    until(lambda: "readonly" in health.problems.get("process engine", ""))
    running = store.get("running")
    assert running is not None
    assert running.status == "InProgress"
    transfer.before_raise = lambda: None
    connection.execute("pragma query_only = 0")
    add_job(store, "next")
    for name in ("running", "next"):
        assert "No space left on device" in str(end_of(store, name).failure_reason)
    until(lambda: health.problems == {})
    engine.close()


def test_a_simulated_job_that_cannot_be_played_fails_with_the_text(store: JobStore, health: ServiceHealth) -> None:
    engine = ReplayEngine(
        store=store,
        files=Files(ValueError("a step log of no steps")),  # type: ignore[arg-type]
        clock=VirtualClock(start_ms=SystemClock().now_ms(), speed_up=1e6),
        faults=FaultInjector(store),
        traces=(),
        may_jump=lambda: True,
        health=health,
    )
    add_job(store, "simulated", Engine.REPLAY)
    engine.start()
    job = end_of(store, "simulated")
    engine.close()
    assert (job.status, job.engine) == ("Failed", "replay")
    assert "ValueError: a step log of no steps" in str(job.failure_reason)


def test_worker_repeats_its_step_after_an_error_and_waits_without_work(
    health: ServiceHealth,
) -> None:
    outcomes: list[bool | Exception] = [True, ValueError("one bad job"), False, False]
    steps: list[float] = []

    def step() -> bool:
        steps.append(time.monotonic())
        outcome = outcomes[len(steps) - 1]
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    worker = Worker("part", step, health=health, at_death=lambda _: pytest.fail("the worker ended"))
    worker.start()
    until(lambda: health.problems == {"part": "ValueError: one bad job"})
    until(lambda: len(steps) == 3)
    assert steps[2] - steps[1] >= RETRY_SECONDS
    until(lambda: health.problems == {})
    time.sleep(0.1)
    assert len(steps) == 3
    worker.wake()
    until(lambda: len(steps) == 4)
    worker.close()
    assert (len(steps), worker.death) == (4, None)


def test_worker_ends_if_it_is_closed_before_its_step(health: ServiceHealth) -> None:
    def step() -> bool:
        worker.ending.set()  # as by a ``close`` whose ``wake`` came before the step
        return False

    worker = Worker("part", step, health=health, at_death=lambda _: pytest.fail("the worker ended"))
    worker.start()
    worker.join(5)
    assert not worker.is_alive()
