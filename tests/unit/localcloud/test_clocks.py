"""A wall clock that is set, a machine that sleeps, a service that is killed: no bill and no limit changes."""

import random
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from localcloud.sagemaker_service import service_health
from localcloud.sagemaker_service.clock import ClockWatch, Machine, SystemClock, TimeScale, VirtualClock
from localcloud.sagemaker_service.host.job_run import failed
from localcloud.sagemaker_service.host.process_engine import END_UNKNOWN, ProcessEngine, _latest_ms
from localcloud.sagemaker_service.instance_table import usable_cores
from localcloud.sagemaker_service.jobs.faults import FaultInjector
from localcloud.sagemaker_service.jobs.job import (
    TERMINAL,
    Engine,
    SecondaryStatus,
    TrainingJob,
    billed_ms,
    moved,
    new_job,
    with_note,
)
from localcloud.sagemaker_service.jobs.job_store import JobStore
from localcloud.sagemaker_service.jobs.warm_pools import expired, take_pool, with_pool
from localcloud.sagemaker_service.replay.replay_engine import ReplayEngine
from localcloud.sagemaker_service.service_health import ServiceHealth
from localcloud.sagemaker_service.settings import ServiceSettings
from tests.archives import tar_gz

HOUR_MS = 3_600_000
LIMIT_SECONDS = 100
REQUEST: dict[str, Any] = {
    "AlgorithmSpecification": {"TrainingImage": "pytorch"},
    "OutputDataConfig": {"S3OutputPath": "s3://lab/out/"},
    "ResourceConfig": {"InstanceType": "local.cpu", "InstanceCount": 1},
    "StoppingCondition": {"MaxRuntimeInSeconds": LIMIT_SECONDS},
    "HyperParameters": {"sagemaker_program": '"train.py"', "sagemaker_submit_directory": '"s3://lab/code.tar.gz"'},
}
WAITS_FOR_A_FILE = "import pathlib, time\nwhile not pathlib.Path({path!r}).exists(): time.sleep(0.02)"


class Laptop(Machine):
    """This machine, with clocks that the test moves and a boot that it repeats."""

    def __init__(self) -> None:
        self.passed_ms = 0
        # One attribute: the service reads it while the test changes it.
        self.wall_moved_and_slept_ms = (0, 0)
        self.boot = "first"

    @property
    def boot_id(self) -> str:
        return self.boot

    def wall_ms(self) -> int:
        return super().wall_ms() + self.wall_moved_and_slept_ms[0] + self.passed_ms

    def monotonic_ms(self) -> int:
        return super().monotonic_ms() + self.passed_ms

    def boottime_ms(self) -> int:
        return self.monotonic_ms() + self.wall_moved_and_slept_ms[1]

    def set_wall(self, ms: int) -> None:
        wall_moved_ms, slept_ms = self.wall_moved_and_slept_ms
        self.wall_moved_and_slept_ms = (wall_moved_ms + ms, slept_ms)

    def sleep(self, ms: int) -> None:
        wall_moved_ms, slept_ms = self.wall_moved_and_slept_ms
        self.wall_moved_and_slept_ms = (wall_moved_ms + ms, slept_ms + ms)


class StoppedLaptop(Laptop):
    """Its clocks move only when the test moves them."""

    def wall_ms(self) -> int:
        return 1_800_000_000_000 + self.wall_moved_and_slept_ms[0] + self.passed_ms

    def monotonic_ms(self) -> int:
        return 500_000 + self.passed_ms


class Transfer:
    """It replaces S3: the source is one script."""

    def __init__(self, script: str) -> None:
        self._script = script

    def download(self, _bucket: str, _key: str, path: Path) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(tar_gz({"train.py": self._script}))
        return path

    def upload(self, *_: Any, **__: Any) -> None: ...


class Logs:
    def __init__(self) -> None:
        self.messages: list[str] = []

    def create_log_group(self, **_: Any) -> None: ...

    def create_log_stream(self, **_: Any) -> None: ...

    def put_log_events(self, **request: Any) -> None:
        self.messages += [event["message"] for event in request["logEvents"]]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[JobStore]:
    opened = JobStore(tmp_path / "state.sqlite", lambda _: [])
    yield opened
    opened.close()


def make_job(name: str, now_ms: int, engine: Engine = Engine.PROCESS, **changes: Any) -> TrainingJob:
    request = {**REQUEST, **changes, "TrainingJobName": name}
    return new_job(request, arn=name, engine=engine, tags={}, now_ms=now_ms, message="")


def process_engine(store: JobStore, clock: SystemClock, folder: Path, *, script: str = "", logs: Any = None) -> Any:
    settings = ServiceSettings(
        port=0,
        state_folder=folder,
        aws_endpoint="",
        python=sys.executable,
        cores=usable_cores(),
        checkpoint_sync_seconds=0.1,
        stop_grace_seconds=1,
    )
    return ProcessEngine(
        store=store,
        transfer=Transfer(script),  # type: ignore[arg-type]
        log_client=logs or Logs(),
        settings=settings,
        clock=clock,
        gpu_count=0,
        faults=FaultInjector(store),
        health=ServiceHealth(),
    )


def until(is_true: Callable[[], bool], seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not is_true():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def stored(store: JobStore, name: str) -> TrainingJob:
    job = store.get(name)
    assert job is not None
    return job


def end_of(store: JobStore, name: str) -> TrainingJob:
    until(lambda: stored(store, name).status in TERMINAL)
    return stored(store, name)


def is_ordered(job: TrainingJob) -> bool:
    times = [job.created_ms, *(time for step in job.transitions for time in (step.start_ms, step.end_ms or 0))]
    return times == sorted(times) and times[-1] == job.training_end_ms == job.modified_ms


@pytest.mark.parametrize("seed", range(20))
def test_while_a_job_runs_only_the_time_that_passes_counts(seed: int) -> None:
    dice, laptop = random.Random(seed), StoppedLaptop()
    clock = SystemClock(laptop)
    for _ in range(5):
        laptop.set_wall(dice.choice([-HOUR_MS, 0, HOUR_MS]))
        assert clock.now_ms() == laptop.wall_ms()
        with clock.running():
            began = clock.now_ms()
            assert began == laptop.wall_ms()
            passed = 0
            for _ in range(20):
                move = dice.choice([laptop.set_wall, laptop.sleep])
                move(dice.randrange(HOUR_MS) if move == laptop.sleep else dice.randrange(-HOUR_MS, HOUR_MS))
                step = dice.randrange(10_000)
                laptop.passed_ms += step
                passed += step
                assert clock.now_ms() == began + passed


def test_jobs_that_run_together_share_one_scale() -> None:
    laptop = StoppedLaptop()
    clock = SystemClock(laptop)
    with clock.running():
        began = clock.now_ms()
        laptop.sleep(HOUR_MS)
        with clock.running(not_before_ms=began + HOUR_MS):
            assert clock.now_ms() == began
        assert clock.now_ms() == began
    assert clock.now_ms() == laptop.wall_ms()


@pytest.mark.parametrize("seed", range(20))
def test_every_sleep_and_every_change_of_the_wall_clock_is_found(seed: int) -> None:
    dice, laptop = random.Random(seed), StoppedLaptop()
    watch = ClockWatch(laptop)
    for _ in range(20):
        slept_ms, set_ms = dice.choice([0, 999, 1000, HOUR_MS]), dice.choice([0, -999, 1000, -HOUR_MS, HOUR_MS])
        laptop.passed_ms += dice.randrange(HOUR_MS)
        laptop.sleep(slept_ms)
        laptop.set_wall(set_ms)
        found = watch.look() or ""
        assert ("slept" in found) == (slept_ms >= 1000)
        assert ("moved forward" in found) == (set_ms >= 1000)
        assert ("moved back" in found) == (set_ms <= -1000)
        assert not found or found.endswith("This changes no bill and no limit.")
    assert watch.look() is None


def test_slow_reading_of_the_clocks_looks_like_no_change() -> None:
    class Busy(StoppedLaptop):
        def boottime_ms(self) -> int:
            found = super().boottime_ms()
            self.passed_ms += 5_000
            return found

    watch = ClockWatch(Busy())
    assert [watch.look() for _ in range(3)] == [None, None, None]


MOVES: dict[str, Sequence[tuple[str, int]]] = {
    "back": [("set_wall", -HOUR_MS)],
    "forward": [("set_wall", HOUR_MS)],
    "forward and back": [("set_wall", HOUR_MS), ("set_wall", -HOUR_MS)],
    "sleep": [("sleep", HOUR_MS)],
}
NOTED = {"back": "moved back by 3600 s", "forward": "moved forward by 3600 s", "sleep": "slept for 3600 s"}


@pytest.mark.parametrize("kind", sorted(MOVES))
def test_real_job_is_billed_and_limited_by_the_time_that_passes(store: JobStore, tmp_path: Path, kind: str) -> None:
    laptop, logs, mark = Laptop(), Logs(), tmp_path / "mark"
    clock = SystemClock(laptop)
    script = WAITS_FOR_A_FILE.format(path=str(mark))
    engine = process_engine(store, clock, tmp_path / "state", script=script, logs=logs)
    began = time.monotonic()
    store.add(make_job("first", clock.now_ms()))
    store.add(make_job("next", clock.now_ms()))
    engine.start()
    until(lambda: stored(store, "first").secondary_status is SecondaryStatus.TRAINING)
    moves = MOVES[kind]
    for number, (move, ms) in enumerate(moves, start=1):
        getattr(laptop, move)(ms)
        until(lambda seen=number: len(logs.messages) >= seen)  # type: ignore[misc]
    mark.touch()
    jobs = {name: end_of(store, name) for name in ("first", "next")}
    passed_seconds = time.monotonic() - began
    engine.close()
    for job in jobs.values():
        assert job.status == "Completed", job.failure_reason
        assert is_ordered(job)
        assert 0 < billed_ms(job) <= 1000 * passed_seconds
    message = next(step.message for step in jobs["first"].transitions if step.status is SecondaryStatus.TRAINING)
    for word, text in NOTED.items():
        assert (text in message) == (word in kind)
        assert any(text in line for line in logs.messages) == (word in kind)
    assert len(logs.messages) == len(moves)
    late = make_job("late", clock.now_ms())
    assert abs(late.created_ms - laptop.wall_ms()) < 10_000


def test_clock_that_is_set_back_extends_no_limit(store: JobStore, tmp_path: Path) -> None:
    laptop = Laptop()
    clock = SystemClock(laptop)
    engine = process_engine(store, clock, tmp_path / "state", script="import time; time.sleep(60)")
    store.add(make_job("long", clock.now_ms(), StoppingCondition={"MaxRuntimeInSeconds": 5}))
    engine.start()
    until(lambda: stored(store, "long").secondary_status is SecondaryStatus.TRAINING)
    laptop.set_wall(-HOUR_MS)
    job = end_of(store, "long")
    engine.close()
    assert job.secondary_status is SecondaryStatus.MAX_RUNTIME_EXCEEDED
    assert is_ordered(job)


def interrupted_job(store: JobStore, laptop: Laptop, *, trained_ms: int) -> TimeScale:
    """A job that trained for this time when its service was killed, and the scale of its times."""
    scales: list[TimeScale] = []
    clock = SystemClock(laptop, keep=scales.append)
    with clock.running():
        job = make_job("killed", clock.now_ms())
        job = moved(job, SecondaryStatus.DOWNLOADING, now_ms=clock.now_ms())
        laptop.passed_ms += 1_000
        job = moved(job, SecondaryStatus.TRAINING, now_ms=clock.now_ms())
        store.add(replace(job, claimed=True, training_start_ms=job.created_ms))
        laptop.passed_ms += trained_ms
    return scales[-1]


def is_billed(job: TrainingJob, seconds: int | None) -> bool:
    """None: as long as its limit allows, and the stop and the upload after that."""
    billed = job.billable_seconds or 0
    return LIMIT_SECONDS <= billed <= LIMIT_SECONDS + 600 if seconds is None else billed == seconds


@pytest.mark.parametrize("moved_ms", [-HOUR_MS, 0, HOUR_MS])
@pytest.mark.parametrize(("trained_ms", "billed_seconds"), [(50_000, 51), (7 * HOUR_MS, None)])
def test_restart_of_the_service_continues_the_times_of_its_job(
    store: JobStore, tmp_path: Path, moved_ms: int, trained_ms: int, billed_seconds: int | None
) -> None:
    laptop = StoppedLaptop()
    kept = interrupted_job(store, laptop, trained_ms=trained_ms)
    laptop.set_wall(moved_ms)
    engine = process_engine(store, SystemClock(laptop, kept=kept), tmp_path / "state")
    engine.start()
    engine.close()
    job = stored(store, "killed")
    assert job.status == "Failed"
    assert is_billed(job, billed_seconds)
    assert is_ordered(job)
    assert not any(END_UNKNOWN in step.message for step in job.transitions)


@pytest.mark.parametrize(("moved_ms", "billed_seconds"), [(-HOUR_MS, 1), (0, 51), (HOUR_MS, None)])
def test_reboot_leaves_the_wall_clock_within_the_limit_and_says_so(
    store: JobStore, tmp_path: Path, moved_ms: int, billed_seconds: int | None
) -> None:
    laptop = StoppedLaptop()
    kept = interrupted_job(store, laptop, trained_ms=50_000)
    laptop.boot = "second"
    laptop.set_wall(moved_ms)
    engine = process_engine(store, SystemClock(laptop, kept=kept), tmp_path / "state")
    engine.start()
    engine.close()
    job = stored(store, "killed")
    assert is_billed(job, billed_seconds)
    assert is_ordered(job)
    assert END_UNKNOWN in job.transitions[-2].message


def test_machine_without_boot_id_continues_no_scale() -> None:
    laptop = StoppedLaptop()
    laptop.boot = ""
    assert SystemClock(laptop, kept=TimeScale(boot_id="", zero_ms=0)).continued_ms() is None


def test_limit_of_a_killed_job_counts_billed_time_and_no_pauses() -> None:
    """Limit 600 s: 300 s billed, 400 s waiting, then 200 s billed until the kill; all 500 s are billed."""
    job = make_job("killed", 0, StoppingCondition={"MaxRuntimeInSeconds": 600})
    job = replace(job, training_start_ms=0)
    for status, now_ms in ((SecondaryStatus.TRAINING, 0), (SecondaryStatus.RESTARTING, 300_000)):
        job = moved(job, status, now_ms=now_ms)
    job = moved(job, SecondaryStatus.TRAINING, now_ms=700_000)
    assert _latest_ms(job, 900_000) == 900_000
    assert _latest_ms(job, 5_000_000) == 1_000_000


def test_end_that_is_written_late_is_billed_to_its_moment(
    store: JobStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An hour passes before the record takes the end, as on a full disk."""
    monkeypatch.setattr(service_health, "RETRY_SECONDS", 0.01)
    laptop = StoppedLaptop()
    clock = SystemClock(laptop)
    engine = process_engine(store, clock, tmp_path / "state", script="pass")
    now_ms = clock.now_ms()
    job = moved(make_job("late", now_ms), SecondaryStatus.TRAINING, now_ms=now_ms)
    store.add(replace(job, claimed=True, training_start_ms=now_ms))
    change, refusals = store.change, [1, 2, 3]

    def change_later(*arguments: Any) -> TrainingJob:
        if refusals:
            refusals.pop()
            laptop.passed_ms += HOUR_MS
            raise sqlite3.OperationalError("database or disk is full")
        return change(*arguments)

    monkeypatch.setattr(store, "change", change_later)
    with clock.running():
        laptop.passed_ms += 2_000
        engine._settle("late", failed("AlgorithmError"))
    assert billed_ms(stored(store, "late")) == 2_000


def test_notes_in_a_status_message_are_bounded() -> None:
    job = make_job("noted", 0)
    for number in range(1000):
        job = with_note(job, f"The machine slept for {number} s.")
    assert 500 < len(job.transitions[-1].message) <= 1024


def test_wall_clock_that_is_set_keeps_a_warm_pool(store: JobStore, monkeypatch: pytest.MonkeyPatch) -> None:
    class Files:
        def write(self, *_: Any, **__: Any) -> int:
            return 1

        def write_tokens(self, _: TrainingJob) -> None: ...

    resources = {"InstanceType": "ml.g5.xlarge", "InstanceCount": 1, "KeepAlivePeriodInSeconds": 600}
    clock = VirtualClock(start_ms=SystemClock().now_ms(), speed_up=1e6)
    engine = ReplayEngine(
        store=store,
        files=Files(),  # type: ignore[arg-type]
        clock=clock,
        faults=FaultInjector(store),
        traces=(),
        may_jump=lambda: True,
        health=ServiceHealth(),
    )
    engine.start()
    for name in ("first", "second"):
        store.add(make_job(name, clock.now_ms(), Engine.REPLAY, ResourceConfig=resources, RoleArn="role"))
        engine.wake(name)
        end_of(store, name)
        later = time.time() + HOUR_MS / 1000
        monkeypatch.setattr(time, "time", lambda later=later: later)
    engine.close()
    assert stored(store, "second").started_warm
    assert (stored(store, "first").warm_pool or {})["ResourceRetainedBillableTimeInSeconds"] < 600


def test_start_of_the_machine_releases_its_pools(store: JobStore) -> None:
    resources = {"InstanceType": "ml.g5.xlarge", "InstanceCount": 1, "KeepAlivePeriodInSeconds": 600}
    job = make_job("old", 0, Engine.REPLAY, ResourceConfig=resources)
    old = with_pool(replace(job, training_end_ms=1_000), machine_seconds=90_000)
    store.add(old)
    assert not take_pool(store, make_job("new", 0, Engine.REPLAY, ResourceConfig=resources), 30)
    assert (expired(old, HOUR_MS, 30).warm_pool or {})["Status"] == "Terminated"


def test_this_machine_names_its_boot() -> None:
    if sys.platform != "linux":
        pytest.skip("only Linux has a boot id")
    machine = Machine()
    assert len(machine.boot_id) == 36
    assert machine.boottime_ms() >= machine.monotonic_ms() > 0
