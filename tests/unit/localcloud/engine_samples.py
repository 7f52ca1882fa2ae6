"""Engines of the local service with a store of their own, and jobs for them."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from localcloud.sagemaker_service.clock import SystemClock
from localcloud.sagemaker_service.host.job_run import JobContext
from localcloud.sagemaker_service.host.process_engine import ProcessEngine
from localcloud.sagemaker_service.jobs.faults import FaultInjector
from localcloud.sagemaker_service.jobs.job import TERMINAL, Engine, TrainingJob, new_job
from localcloud.sagemaker_service.jobs.job_store import JobStore
from localcloud.sagemaker_service.settings import ServiceSettings
from tests.archives import tar_gz

REQUEST: dict[str, Any] = {
    "AlgorithmSpecification": {"TrainingImage": "pytorch"},
    "OutputDataConfig": {"S3OutputPath": "s3://lab/out/"},
    "ResourceConfig": {"InstanceType": "local.cpu", "InstanceCount": 1},
    "HyperParameters": {
        "sagemaker_program": '"train.py"',
        "sagemaker_submit_directory": '"s3://lab/code.tar.gz"',
    },
}


def open_store(folder: Path) -> JobStore:
    return JobStore(folder / "state.sqlite", lambda _: [])


def stored(store: JobStore, name: str) -> TrainingJob:
    job = store.get(name)
    assert job is not None
    return job


def add_job(
    store: JobStore,
    name: str,
    engine: Engine = Engine.PROCESS,
    *,
    now_ms: int | None = None,
    **changes: Any,
) -> TrainingJob:
    request = {**REQUEST, **changes, "TrainingJobName": name}
    created_ms = SystemClock().now_ms() if now_ms is None else now_ms
    job = new_job(request, arn=name, engine=engine, now_ms=created_ms)
    store.add(job)
    return job


def until(is_true: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not is_true():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def ended_job(store: JobStore, name: str) -> TrainingJob:
    until(lambda: stored(store, name).status in TERMINAL)
    return stored(store, name)


class Bucket:
    """It replaces S3: the source archive with a script, and what jobs upload."""

    def __init__(self, script: str) -> None:
        self.script = script
        self.objects: dict[str, bytes] = {}

    def download(self, _bucket: str, _key: str, path: Path) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(tar_gz({"train.py": self.script}))
        return path

    def download_prefix(self, uri: str, folder: Path, **_: bool) -> list[Path]:
        paths = []
        for key, content in self.objects.items():
            if key.startswith(uri):
                paths.append(folder / key.removeprefix(uri))
                paths[-1].write_bytes(content)
        return paths

    def upload(self, path: Path, uri: str, *, is_over: Callable[[], bool]) -> None:
        if not is_over():
            self.objects[uri] = path.read_bytes()


class NoLogs:
    def __getattr__(self, _name: str) -> Callable[..., None]:
        return lambda **_: None


def job_context(
    store: JobStore,
    folder: Path,
    *,
    transfer: Any = None,
    clock: SystemClock | None = None,
    **settings: Any,
) -> JobContext:
    given = {"port": 0, "state_folder": folder, "aws_endpoint": "", "cores": (0,), **settings}
    return JobContext(
        store=store,
        transfer=transfer,
        log_client=NoLogs(),
        settings=ServiceSettings(**given),
        clock=clock or SystemClock(),
        gpu_count=0,
        faults=FaultInjector(store),
    )


def process_engine(store: JobStore, folder: Path, **given: Any) -> ProcessEngine:
    """An engine of processes, with arguments of ``job_context``."""
    return ProcessEngine(job_context(store, folder, **given))
