"""Engines of the local service with a store of their own, and jobs for them."""

from pathlib import Path
from typing import Any

from localcloud.sagemaker_service.clock import SystemClock
from localcloud.sagemaker_service.host.process_engine import ProcessEngine
from localcloud.sagemaker_service.jobs.faults import FaultInjector
from localcloud.sagemaker_service.jobs.job import Engine, TrainingJob, new_job
from localcloud.sagemaker_service.jobs.job_store import JobStore
from localcloud.sagemaker_service.settings import ServiceSettings

REQUEST: dict[str, Any] = {
    "AlgorithmSpecification": {"TrainingImage": "pytorch"},
    "OutputDataConfig": {"S3OutputPath": "s3://lab/out/"},
    "ResourceConfig": {"InstanceType": "local.cpu", "InstanceCount": 1},
    "HyperParameters": {"sagemaker_program": '"train.py"', "sagemaker_submit_directory": '"s3://lab/code.tar.gz"'},
}


def open_store(folder: Path) -> JobStore:
    return JobStore(folder / "state.sqlite", lambda _: [])


def stored(store: JobStore, name: str) -> TrainingJob:
    job = store.get(name)
    assert job is not None
    return job


def add_job(
    store: JobStore, name: str, engine: Engine = Engine.PROCESS, *, now_ms: int | None = None, **changes: Any
) -> TrainingJob:
    request = {**REQUEST, **changes, "TrainingJobName": name}
    created_ms = SystemClock().now_ms() if now_ms is None else now_ms
    job = new_job(request, arn=name, engine=engine, tags={}, now_ms=created_ms, message="")
    store.add(job)
    return job


def process_engine(store: JobStore, folder: Path, *, clock: SystemClock, transfer: Any = None) -> ProcessEngine:
    return ProcessEngine(
        store=store,
        transfer=transfer,
        log_client=None,  # type: ignore[arg-type]
        settings=ServiceSettings(port=0, state_folder=folder, aws_endpoint="", python="", cores=(0,)),
        clock=clock,
        gpu_count=0,
        faults=FaultInjector(store),
    )
