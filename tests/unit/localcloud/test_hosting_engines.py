"""Endpoints and transform jobs under faults, with real containers: each ends in its status, and none is left behind."""

import socket
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import pytest

from localcloud.sagemaker_service.clock import SystemClock
from localcloud.sagemaker_service.hosting.endpoint_engine import EndpointEngine
from localcloud.sagemaker_service.hosting.hosting import (
    Endpoint,
    EndpointConfig,
    EndpointStatus,
    HostedModel,
    HostingStore,
    TransformJob,
    TransformStatus,
)
from localcloud.sagemaker_service.hosting.hosting_engine import HostingContext, HostingEngine
from localcloud.sagemaker_service.hosting.model_container import LogDestination, ModelContainer
from localcloud.sagemaker_service.hosting.transform_engine import TransformEngine, bodies, read_transform_work
from localcloud.sagemaker_service.jobs.job_store import JobStore
from localcloud.sagemaker_service.service_health import ServiceHealth
from localcloud.sagemaker_service.settings import ServiceSettings
from tests.archives import tar_gz
from tests.unit.localcloud.test_engines import until

HANDLER = """
import time
def model_fn(folder):
    print("loading the model", flush=True)
    {at_load}
def input_fn(body, content_type):
    return body
def predict_fn(data, model):
    if b"die" in data:
        print("out of memory", flush=True)
        import os; os._exit(3)
    if b"think" in data:
        print("thinking", flush=True)
        time.sleep(600)
    return data
def output_fn(made, accept):
    return made
"""
SLOW = "time.sleep(60)"
Engine = TypeVar("Engine", bound=HostingEngine)


class Objects:
    """It replaces S3 and holds the model's archive and the requests."""

    def __init__(self, at_load: str = "pass") -> None:
        self.archive = tar_gz({"code/inference.py": HANDLER.replace("{at_load}", at_load)})
        self.request = b'{"inputs": "a"}\n'
        self.uploaded: dict[str, bytes] = {}

    def download(self, _bucket: str, key: str, path: Path) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(self.archive if key.endswith(".tar.gz") else self.request)
        return path

    def list_objects(self, _uri: str) -> list[tuple[str, str]]:
        return [("requests/a.jsonl", "etag")]

    def upload(self, path: Path, uri: str) -> None:
        self.uploaded[uri] = path.read_bytes()


class Logs:
    def create_log_group(self, **_: Any) -> None: ...

    def create_log_stream(self, **_: Any) -> None: ...

    def put_log_events(self, **_: Any) -> None: ...


@pytest.fixture
def jobs(tmp_path: Path) -> Iterator[JobStore]:
    opened = JobStore(tmp_path / "state.sqlite", lambda _: [])
    yield opened
    opened.close()


@pytest.fixture
def store(jobs: JobStore) -> HostingStore:
    made = HostingStore(jobs)
    container = {"Image": "local", "ModelDataUrl": "s3://lab/model.tar.gz"}
    made.put(HostedModel(name="m", arn="m", request={"PrimaryContainer": container}, created_ms=0))
    variant = {"VariantName": "AllTraffic", "ModelName": "m", "InstanceType": "local.cpu"}
    made.put(EndpointConfig(name="c", arn="c", request={"ProductionVariants": [variant]}, created_ms=0))
    return made


@pytest.fixture
def settings(tmp_path: Path) -> ServiceSettings:
    return ServiceSettings(
        port=0, state_folder=tmp_path, aws_endpoint="", python=sys.executable, cores=(0,), access_key_id="key"
    )


def engine_of(
    kind: type[Engine],
    store: HostingStore,
    objects: Objects,
    settings: ServiceSettings,
    health: ServiceHealth | None = None,
) -> Engine:
    return kind(
        HostingContext(
            store=store,
            transfer=objects,  # type: ignore[arg-type]
            logs=Logs(),
            settings=settings,
            clock=SystemClock(),
            health=health or ServiceHealth(),
        )
    )


def host(engine: EndpointEngine, store: HostingStore, name: str = "e") -> None:
    request = {"EndpointName": name, "EndpointConfigName": "c"}
    store.put(
        Endpoint(name=name, arn=name, request=request, created_ms=0, modified_ms=0, status=EndpointStatus.CREATING)
    )
    engine.host(name)


def new_transform(store: HostingStore, name: str = "t") -> TransformJob:
    source = {"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": "s3://lab/requests/"}}
    request = {
        "TransformJobName": name,
        "ModelName": "m",
        "TransformInput": {"DataSource": source, "SplitType": "Line"},
        "TransformOutput": {"S3OutputPath": "s3://lab/answers"},
    }
    job = TransformJob(
        name=name, arn=name, request=request, created_ms=0, modified_ms=0, status=TransformStatus.IN_PROGRESS
    )
    store.put(job)
    return job


def status_of(store: HostingStore, kind: type[Endpoint] | type[TransformJob], name: str) -> str | None:
    found = store.get(kind, name)
    return None if found is None else str(found.status)


def reason_of(store: HostingStore, kind: type[Endpoint] | type[TransformJob], name: str) -> str:
    found = store.get(kind, name)
    assert found is not None
    return found.failure_reason or ""


def is_loading(settings: ServiceSettings, folder: str) -> bool:
    return has_printed(settings, folder, "loading the model")


def has_printed(settings: ServiceSettings, folder: str, text: str) -> bool:
    log = settings.state_folder / folder / "algo-1" / "log.txt"
    return log.is_file() and text in log.read_text()


def test_a_transform_job_that_is_stopped_while_its_container_starts_is_stopped(
    store: HostingStore, settings: ServiceSettings
) -> None:
    engine = engine_of(TransformEngine, store, Objects(at_load=SLOW), settings)
    engine.run(new_transform(store).name)
    until(lambda: is_loading(settings, "transforms/t"))
    engine.move("t", TransformStatus.STOPPING)
    until(lambda: status_of(store, TransformJob, "t") != "Stopping")
    engine.close()
    assert (status_of(store, TransformJob, "t"), reason_of(store, TransformJob, "t")) == ("Stopped", "")


def test_a_transform_job_that_is_stopped_before_its_thread_begins_stays_stopped(
    store: HostingStore, settings: ServiceSettings
) -> None:
    engine = engine_of(TransformEngine, store, Objects(), settings)
    new_transform(store)
    engine.move("t", TransformStatus.STOPPING)
    engine.run("t")
    until(lambda: status_of(store, TransformJob, "t") in {TransformStatus.STOPPED, TransformStatus.COMPLETED})
    engine.close()
    assert status_of(store, TransformJob, "t") == TransformStatus.STOPPED


def test_a_transform_job_stopped_during_a_request_does_not_wait_for_its_answer(
    store: HostingStore, settings: ServiceSettings
) -> None:
    objects = Objects()
    objects.request = b'{"inputs": "think"}\n'
    engine = engine_of(TransformEngine, store, objects, settings)
    engine.run(new_transform(store).name)
    until(lambda: has_printed(settings, "transforms/t", "thinking"))
    engine.stop("t")
    until(lambda: status_of(store, TransformJob, "t") != "Stopping")
    engine.close()
    assert (status_of(store, TransformJob, "t"), reason_of(store, TransformJob, "t")) == ("Stopped", "")
    assert objects.uploaded == {}


def test_service_that_ends_while_containers_start_leaves_their_status_unchanged(
    store: HostingStore, settings: ServiceSettings
) -> None:
    """The next start of the service settles it."""
    transforms = engine_of(TransformEngine, store, Objects(at_load=SLOW), settings)
    endpoints = engine_of(EndpointEngine, store, Objects(at_load=SLOW), settings)
    transforms.run(new_transform(store).name)
    host(endpoints, store)
    until(lambda: is_loading(settings, "transforms/t") and is_loading(settings, "endpoints/e"))
    endpoints.close()
    transforms.close()
    assert status_of(store, Endpoint, "e") == "Creating"
    assert status_of(store, TransformJob, "t") == "InProgress"
    transforms.start()
    assert reason_of(store, TransformJob, "t").startswith("InternalServerError")


def test_an_error_of_s3_while_the_service_ends_fails_no_endpoint(
    store: HostingStore, settings: ServiceSettings
) -> None:
    objects = Objects()
    engine = engine_of(EndpointEngine, store, objects, settings)
    is_asked, may_fail = threading.Event(), threading.Event()

    def fail(*_: Any) -> Path:
        is_asked.set()
        may_fail.wait(10)
        raise ConnectionRefusedError("S3 has ended first")

    objects.download = fail  # type: ignore[method-assign,assignment]
    host(engine, store)
    assert is_asked.wait(10)
    closing = threading.Thread(target=engine.close)
    closing.start()
    until(engine._ending.is_set)
    may_fail.set()
    closing.join()
    assert status_of(store, Endpoint, "e") == "Creating"


@pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")
def test_endpoint_without_its_configuration_fails_with_the_containers_lines(
    store: HostingStore, settings: ServiceSettings
) -> None:
    objects = Objects(at_load='time.sleep(0.3); raise RuntimeError("the weights are missing")')
    engine = engine_of(EndpointEngine, store, objects, settings)
    host(engine, store)
    until(lambda: is_loading(settings, "endpoints/e"))
    config = store.get(EndpointConfig, "c")
    assert config is not None
    store.remove(config)
    until(lambda: status_of(store, Endpoint, "e") == "Failed")
    engine.close()
    reason = reason_of(store, Endpoint, "e")
    assert "variant AllTraffic did not pass the ping health check" in reason
    assert "RuntimeError: the weights are missing" in reason


def test_container_that_ends_during_a_request_fails_its_transform_job(
    store: HostingStore, settings: ServiceSettings
) -> None:
    objects = Objects()
    objects.request = b'{"inputs": "die"}\n'
    engine = engine_of(TransformEngine, store, objects, settings)
    engine.run(new_transform(store).name)
    until(lambda: status_of(store, TransformJob, "t") != "InProgress")
    engine.close()
    reason = reason_of(store, TransformJob, "t")
    assert reason.startswith("AlgorithmError: See job logs for more information.")
    assert "out of memory" in reason
    assert objects.uploaded == {}


@pytest.mark.parametrize("damage", [slice(0, 80), slice(40, None)], ids=["cut off", "without its head"])
def test_a_damaged_archive_is_the_requests_fault(store: HostingStore, settings: ServiceSettings, damage: slice) -> None:
    objects = Objects()
    objects.archive = objects.archive[damage]
    engine = engine_of(EndpointEngine, store, objects, settings)
    host(engine, store)
    until(lambda: status_of(store, Endpoint, "e") == "Failed")
    engine.close()
    assert reason_of(store, Endpoint, "e").startswith("ClientError: the archive model.tar.gz can't be unpacked: ")


def test_an_endpoint_outlives_a_transform_job_of_its_name(store: HostingStore, settings: ServiceSettings) -> None:
    objects = Objects()
    endpoints = engine_of(EndpointEngine, store, objects, settings)
    transforms = engine_of(TransformEngine, store, objects, settings)
    host(endpoints, store, "same")
    until(lambda: status_of(store, Endpoint, "same") == "InService")
    hosted = endpoints._hosted["same"]
    transforms.run(new_transform(store, "same").name)
    until(lambda: status_of(store, TransformJob, "same") == "Completed")
    transforms.close()
    assert objects.uploaded == {"s3://lab/answers/a.jsonl.out": b'{"inputs": "a"}\n'}
    assert endpoints._hosted["same"] is hosted
    assert endpoints.invoke("same", b"still here", {}).body == b"still here"
    endpoints.close()


def test_while_nothing_can_be_written_an_end_waits_and_health_reports_it(
    jobs: JobStore, store: HostingStore, settings: ServiceSettings
) -> None:
    objects, health = Objects(), ServiceHealth()
    engine = engine_of(EndpointEngine, store, objects, settings, health)
    connection = jobs._connection

    def fail(*_: Any) -> Path:
        connection.execute("pragma query_only = 1")
        raise OSError(28, "No space left on device")

    objects.download = fail  # type: ignore[method-assign,assignment]
    host(engine, store)
    until(lambda: any("readonly" in problem for problem in health.problems.values()))
    assert status_of(store, Endpoint, "e") == "Creating"
    connection.execute("pragma query_only = 0")
    until(lambda: status_of(store, Endpoint, "e") == "Failed")
    until(lambda: health.problems == {})
    engine.close()
    assert "No space left on device" in reason_of(store, Endpoint, "e")


def test_an_answer_that_is_cut_off_is_an_error_of_the_connection(
    store: HostingStore, settings: ServiceSettings
) -> None:
    model = store.get(HostedModel, "m")
    assert model is not None
    container = ModelContainer(
        model,
        settings.state_folder / "endpoints/e",
        transfer=Objects(),  # type: ignore[arg-type]
        logs=Logs(),
        settings=settings,
        log_to=LogDestination(group="g", stream="s"),
    )
    with socket.create_server(("127.0.0.1", container._port)) as listener:
        answering = threading.Thread(target=_answer_half, args=(listener,))
        answering.start()
        with pytest.raises(ConnectionError, match=r"IncompleteRead\(4 bytes read, 6 more expected\)"):
            container.invoke(b"{}", {})
        answering.join()


def _answer_half(listener: socket.socket) -> None:
    accepted, _ = listener.accept()
    with accepted:
        accepted.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")
        accepted.shutdown(socket.SHUT_WR)
        while accepted.recv(65_536):  # A connection closed with something unread is reset.
            pass


def test_requests_of_many_lines_are_made_in_a_time_that_grows_with_them(store: HostingStore) -> None:
    """Each request of 100,000 bytes takes 5,000 of the 100,000 lines of 20 bytes."""
    work = replace(read_transform_work(new_transform(store)), payload_bytes=100_000)
    content = b'{"inputs": "abcd..."}'[:19] + b"\n"
    began = time.process_time()
    made = list(bodies(content * 100_000, work))
    assert time.process_time() - began < 2
    assert [len(each) for each in made] == [100_000] * 20
    whole = replace(work, payload_bytes=10_000_000)
    assert [len(each) for each in bodies(content * 100_000, whole)] == [2_000_000]
