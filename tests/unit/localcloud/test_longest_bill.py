"""Whatever a job does, no engine bills more than what the lab reserves for it: limit, stop, upload
and a margin.
"""

import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from localcloud.sagemaker_service.clock import VirtualClock
from localcloud.sagemaker_service.host import host_training, job_run
from localcloud.sagemaker_service.jobs.faults import FaultInjector
from localcloud.sagemaker_service.jobs.job import (
    TERMINAL,
    Engine,
    SecondaryStatus,
    Status,
    TrainingJob,
    moved,
)
from localcloud.sagemaker_service.jobs.job_store import JobStore
from localcloud.sagemaker_service.replay.replay_engine import ReplayEngine
from localcloud.sagemaker_service.replay.trace import Trace
from tests.unit.localcloud.engine_samples import Bucket, add_job, ended_job, process_engine
from traindyno.core.costs.prices import cost_usd
from traindyno.core.planning.job_terms import JobTerms
from traindyno.core.suite.job_time import STOP_SECONDS, UPLOAD_SECONDS

# 120 s to stop become less in these tests.
GRACE_SECONDS = 0.3
SHORT = JobTerms(instance_type="local.cpu", instance_count=1, max_job_seconds=1)
DEAF = "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
FROZEN = "import os, signal, time\n"
SCRIPTS = {
    "ignores SIGTERM": f"{DEAF}time.sleep(600)",
    "is stopped by SIGSTOP": f"{FROZEN}os.kill(os.getpid(), signal.SIGSTOP)\ntime.sleep(600)",
    "stops its supervisor": f"{FROZEN}os.kill(os.getppid(), signal.SIGSTOP)\ntime.sleep(600)",
    "ends by itself": "print('done')",
    "leaves a checkpoint": (
        "import os, pathlib\n"
        "(pathlib.Path(os.environ['SM_MODEL_DIR']).parent / 'checkpoints' / "
        "'state.pt').write_text('1')"
    ),
}


def limited(terms: JobTerms) -> dict[str, int]:
    return {"MaxRuntimeInSeconds": terms.max_job_seconds}


def ask_to_stop(store: JobStore, name: str, now_ms: Callable[[], int]) -> None:
    """As StopTrainingJob does to a job that holds instances."""

    def change(job: TrainingJob) -> TrainingJob:
        if job.status in TERMINAL or not job.claimed:
            return job
        stopping = moved(job, SecondaryStatus.STOPPING, now_ms=now_ms())
        return replace(stopping, status=Status.STOPPING, stop_requested=True)

    store.change(name, change)


class NoFiles:
    """Simulated files are not what these tests are about."""

    def write(self, *_: Any, **__: Any) -> int:
        return 0

    def write_tokens(self, _job: TrainingJob) -> None:
        pass


def replay(
    store: JobStore, clock: VirtualClock, traces: tuple[Trace, ...], faults: dict[str, Any]
) -> ReplayEngine:
    injector = FaultInjector(store)
    injector.replace(faults)
    return ReplayEngine(
        store=store,
        files=NoFiles(),  # type: ignore[arg-type]
        clock=clock,
        faults=injector,
        traces=traces,
        may_jump=lambda: True,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """A simulated job with random limits and random times."""

    terms: JobTerms
    trace: Trace
    is_spot: bool

    @property
    def request(self) -> dict[str, Any]:
        spot = {"MaxWaitTimeInSeconds": 2 * self.terms.max_job_seconds} if self.is_spot else {}
        return {
            "EnableManagedSpotTraining": self.is_spot,
            "StoppingCondition": {**limited(self.terms), **spot},
            "HyperParameters": {"job": self.trace.name},
        }

    @property
    def seconds_after_limit(self) -> float:
        return min(self.trace.stop_seconds, 120) + min(self.trace.upload_seconds, UPLOAD_SECONDS)


def random_job(rng: random.Random, name: str) -> Played:
    limit = rng.randint(10, 5000)
    upload = UPLOAD_SECONDS
    trace = Trace(
        name=name,
        match={"job": name},
        download_seconds=rng.choice([0.0, rng.uniform(0, limit / 2), rng.uniform(0, 2 * limit)]),
        load_seconds=rng.uniform(0, limit / 4),
        step_seconds=rng.uniform(0, limit / 8),
        samples_per_step=1,
        steps=10,
        stop_seconds=rng.choice([0.0, rng.uniform(0, 1000)]),
        upload_seconds=rng.choice([0.0, rng.uniform(0, upload), rng.uniform(0, 5 * upload)]),
    )
    terms = JobTerms(instance_type="local.cpu", instance_count=1, max_job_seconds=limit)
    return Played(terms=terms, trace=trace, is_spot=rng.random() < 0.3)


@pytest.mark.parametrize("seed", range(3))
def test_a_simulated_job_is_billed_no_more_than_its_reservation(store: JobStore, seed: int) -> None:
    """Some jobs are asked to stop at some time, and some on spot are interrupted."""
    rng = random.Random(seed)
    clock = VirtualClock(start_ms=1_790_000_000_000, speed_up=10_000)
    played = {name: random_job(rng, name) for name in (f"job-{number}" for number in range(80))}
    for name, recorded in played.items():
        add_job(store, name, Engine.REPLAY, now_ms=clock.now_ms(), **recorded.request)
    traces = tuple(recorded.trace for recorded in played.values())
    engine = replay(store, clock, traces, {"seed": seed, "spot_interruption_fraction": 0.5})
    engine.start()
    for name in rng.sample(sorted(played), 30):
        time.sleep(0.01)
        ask_to_stop(store, name, clock.now_ms)
        engine.wake(name)
    jobs = {name: ended_job(store, name) for name in played}
    engine.close()
    for name, job in jobs.items():
        usd_per_hour = Decimal(rng.randint(1, 10**9)) / 10**6
        billed_usd = cost_usd(job.billable_seconds or 0, 1, usd_per_hour)
        assert billed_usd <= played[name].terms.worst_case_usd(usd_per_hour), (
            played[name],
            job.transitions,
        )
    timed_out = [
        name
        for name, job in jobs.items()
        if job.secondary_status is SecondaryStatus.MAX_RUNTIME_EXCEEDED
    ]
    on_demand = [name for name in timed_out if not played[name].is_spot]
    assert len(on_demand) > 5
    for name in on_demand:
        expected = played[name].terms.max_job_seconds + played[name].seconds_after_limit
        assert jobs[name].billable_seconds == pytest.approx(expected, abs=1)


def test_a_simulated_upload_outlasting_its_limit_is_ended_and_says_so(store: JobStore) -> None:
    clock = VirtualClock(start_ms=1_790_000_000_000, speed_up=600)
    terms = JobTerms(instance_type="local.cpu", instance_count=1, max_job_seconds=600)
    trace = Trace(
        name="long",
        download_seconds=10,
        load_seconds=10,
        step_seconds=1,
        steps=10,
        upload_seconds=7200,
    )
    for name in ("ended", "unheeded"):
        add_job(store, name, Engine.REPLAY, now_ms=clock.now_ms(), StoppingCondition=limited(terms))
        engine = replay(store, clock, (trace,), {"unheeded_limits": name == "unheeded"})
        engine.start()
        ended_job(store, name)
        engine.close()
    job = ended_job(store, "ended")
    unheeded = ended_job(store, "unheeded")
    uploading = job.transitions[-2]
    assert (job.status, uploading.status) == ("Failed", "Uploading")
    assert (uploading.end_ms or 0) - uploading.start_ms == 300_000
    assert "longer than 300 s, so the local cloud ended it" in str(job.failure_reason)
    # as on AWS, where nothing ends it
    assert (unheeded.status, (unheeded.billable_seconds or 0) > 7200) == ("Completed", True)


class HoldingBucket(Bucket):
    """Its uploads end only once the job's time for them is over."""

    def __init__(self, script: str) -> None:
        super().__init__(script)
        self.holds_uploads = self.holds_downloads = False
        self.held: list[Path] = []
        self.ends = threading.Event()

    def download(self, bucket: str, key: str, path: Path) -> Path:
        if self.holds_downloads:
            self.ends.wait(600)
        return super().download(bucket, key, path)

    def upload(self, path: Path, uri: str, *, is_over: Callable[[], bool]) -> None:
        if self.holds_uploads and not is_over():
            self.held.append(path)
            self.ends.wait(600)


def run_job(
    store: JobStore, objects: HoldingBucket, folder: Path, terms: JobTerms = SHORT
) -> TrainingJob:
    engine = process_engine(store, folder, transfer=objects, stop_grace_seconds=GRACE_SECONDS)
    add_job(
        store,
        "job",
        StoppingCondition=limited(terms),
        CheckpointConfig={"S3Uri": "s3://lab/checkpoints"},
    )
    engine.start()
    try:
        return ended_job(store, "job")
    finally:
        objects.ends.set()
        engine.close()


@pytest.mark.parametrize(
    ("what", "holds_uploads"),
    [
        ("ends by itself", False),
        ("ends by itself", True),
        ("ignores SIGTERM", True),
        ("leaves a checkpoint", True),
        ("is stopped by SIGSTOP", False),
        ("stops its supervisor", False),
    ],
)
def test_a_job_of_this_machine_is_billed_no_more_than_its_reservation(
    store: JobStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str, holds_uploads: bool
) -> None:
    monkeypatch.setattr(host_training, "SUPERVISOR_SECONDS", 1.0)
    monkeypatch.setattr(job_run, "UPLOAD_SECONDS", 1)
    objects = HoldingBucket(SCRIPTS[what])
    objects.holds_uploads = holds_uploads
    ends_by_itself = what in {"ends by itself", "leaves a checkpoint"}
    terms = replace(SHORT, max_job_seconds=60) if ends_by_itself else SHORT
    job = run_job(store, objects, tmp_path, terms)
    assert (
        job.billable_seconds or 0
    ) <= terms.longest_seconds - STOP_SECONDS + GRACE_SECONDS - UPLOAD_SECONDS + 1
    if not ends_by_itself:
        assert job.secondary_status is SecondaryStatus.MAX_RUNTIME_EXCEEDED
    elif holds_uploads:
        assert "the upload of the outputs took longer than" in str(job.failure_reason)
        was_held = [path for path in objects.held if path.name == "state.pt"]
        assert bool(was_held) is (what == "leaves a checkpoint")
    else:
        assert job.status is Status.COMPLETED


def test_a_download_is_ended_at_the_time_limit(store: JobStore, tmp_path: Path) -> None:
    objects = HoldingBucket(SCRIPTS["ends by itself"])
    objects.holds_downloads = True
    job = run_job(store, objects, tmp_path)
    assert [step.status for step in job.transitions[1:]] == ["Downloading", "MaxRuntimeExceeded"]
    assert (job.billable_seconds or 0) <= SHORT.longest_seconds
