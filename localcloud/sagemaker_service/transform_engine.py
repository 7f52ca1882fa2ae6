"""Runs batch transform jobs on this machine: the model's container, and every object under the input's prefix."""

import logging
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from localcloud.sagemaker_service.clock import Clock
from localcloud.sagemaker_service.hosting import HostingStore, Model, TransformJob, TransformStatus
from localcloud.sagemaker_service.hosting_view import transform_event
from localcloud.sagemaker_service.job import FAILURE_REASON_LIMIT
from localcloud.sagemaker_service.job_failure import INTERNAL_ERROR, internal_error
from localcloud.sagemaker_service.job_store import NewEvent
from localcloud.sagemaker_service.log_shipping import LogClient
from localcloud.sagemaker_service.model_container import ContainerFailed, LogPlace, ModelContainer
from localcloud.sagemaker_service.s3_transfer import DataUnavailable, S3Transfer, relative_name, split_uri
from localcloud.sagemaker_service.safe_paths import UnsafePath
from localcloud.sagemaker_service.settings import Settings
from localcloud.sagemaker_service.toolkit import UnsupportedJob

LOG = logging.getLogger(__name__)
LOG_GROUP = "/aws/sagemaker/TransformJobs"
SEE_LOGS = "AlgorithmError: See job logs for more information"
MIB = 1024 * 1024
DEFAULT_PAYLOAD_MIB = 6
ENDED = frozenset({TransformStatus.COMPLETED, TransformStatus.FAILED, TransformStatus.STOPPED})


class Refused(Exception):
    """The container answered a request with an error."""


class Stopped(Exception):
    """The job was asked to stop, or the service ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What a request for a transform job says about its data."""

    input_uri: str
    output_uri: str
    headers: dict[str, str]
    splits_lines: bool
    joins_lines: bool
    records_per_request: int | None
    payload_bytes: int


class TransformEngine:
    def __init__(
        self, *, store: HostingStore, transfer: S3Transfer, logs: LogClient, settings: Settings, clock: Clock
    ) -> None:
        self._store = store
        self._transfer = transfer
        self._logs = logs
        self._settings = settings
        self._clock = clock
        self._lock = threading.Lock()
        self._ending = threading.Event()
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        """A job that the service left behind when it ended has failed, as by a fault of SageMaker's own."""
        for job in self._store.all(TransformJob):
            if job.status not in ENDED:
                self.move(job.name, TransformStatus.FAILED, INTERNAL_ERROR)

    def run(self, name: str) -> None:
        thread = threading.Thread(target=self._run, args=(name,), name=f"transform {name}", daemon=True)
        self._threads.append(thread)
        thread.start()

    def close(self) -> None:
        self._ending.set()
        for thread in self._threads:
            thread.join()

    def move(self, name: str, status: TransformStatus, failure_reason: str | None = None) -> None:
        with self._lock:
            job = self._store.get(TransformJob, name)
            if job is None or job.status in ENDED:
                return
            now_ms = self._clock.now_ms()
            started_ms = job.started_ms
            if started_ms is None and status is TransformStatus.IN_PROGRESS:
                started_ms = now_ms
            moved = replace(
                job,
                status=status,
                modified_ms=now_ms,
                started_ms=started_ms,
                ended_ms=now_ms if status in ENDED else None,
                failure_reason=failure_reason[:FAILURE_REASON_LIMIT] if failure_reason else None,
            )
            document = transform_event(moved, account_id=self._settings.account_id, region=self._settings.region)
            self._store.put(moved, [NewEvent(due_seconds=0, document=document)])

    def _run(self, name: str) -> None:
        try:
            self._transform(name)
        except Stopped:
            if not self._ending.is_set():
                self.move(name, TransformStatus.STOPPED)
        except ContainerFailed as error:
            room = FAILURE_REASON_LIMIT - len(SEE_LOGS) - 40
            self.move(
                name,
                TransformStatus.FAILED,
                f"{SEE_LOGS}. The container's last lines:\n{error.last_lines[-room:]}",
            )
        except (DataUnavailable, UnsupportedJob, UnsafePath, Refused) as error:
            self.move(name, TransformStatus.FAILED, f"ClientError: {str(error).removeprefix('ClientError: ')}")
        except Exception as error:
            LOG.exception("transform job %s could not be run", name)
            self.move(name, TransformStatus.FAILED, internal_error(error))
        else:
            self.move(name, TransformStatus.COMPLETED)

    def _transform(self, name: str) -> None:
        job = self._store.get(TransformJob, name)
        model = self._store.get(Model, job.request["ModelName"]) if job else None
        if job is None or model is None:
            raise UnsupportedJob(f'Could not find model "{job.request["ModelName"] if job else name}".')
        work = read_work(job)
        self.move(name, TransformStatus.IN_PROGRESS)
        folder = self._settings.state_folder / "transforms" / name
        log_to = LogPlace(group=LOG_GROUP, stream=name)
        container = ModelContainer(
            model, folder, transfer=self._transfer, logs=self._logs, settings=self._settings, log_to=log_to
        )
        with container:
            container.start(lambda: self._is_stopping(name))
            for source, target in self._objects(work, folder):
                answers = [self._ask(container, name, body, work) for body in bodies(source.read_bytes(), work)]
                result = folder / "answer.out"
                result.write_bytes(joined(answers, work))
                self._transfer.upload(result, target)

    def _objects(self, work: Work, folder: Path) -> Iterator[tuple[Path, str]]:
        """Each input object as a file, and where its answers go."""
        bucket, prefix = split_uri(work.input_uri)
        keys = [key for key, _ in self._transfer.list_objects(work.input_uri) if not key.endswith("/")]
        if not keys:
            raise DataUnavailable(f"ClientError: No S3 objects found under S3 URL {work.input_uri!r}")
        for key in keys:
            relative = relative_name(key, prefix)
            yield (
                self._transfer.download(bucket, key, folder / "input"),
                f"{work.output_uri.rstrip('/')}/{relative}.out",
            )

    def _ask(self, container: ModelContainer, name: str, body: bytes, work: Work) -> bytes:
        if self._is_stopping(name):
            raise Stopped
        answer = container.invoke(body, work.headers)
        if answer.status != 200:
            text = answer.body.decode(errors="replace")[:500]
            raise Refused(f"the container answered {answer.status} to a request of {len(body)} bytes: {text}")
        return answer.body

    def _is_stopping(self, name: str) -> bool:
        job = self._store.get(TransformJob, name)
        return self._ending.is_set() or job is None or job.status is TransformStatus.STOPPING


def read_work(job: TransformJob) -> Work:
    request: Any = job.request
    source, target = request["TransformInput"], request["TransformOutput"]
    headers = {"Content-Type": source.get("ContentType", "application/octet-stream")}
    if "Accept" in target:
        headers["Accept"] = target["Accept"]
    return Work(
        input_uri=source["DataSource"]["S3DataSource"]["S3Uri"],
        output_uri=target["S3OutputPath"],
        headers=headers,
        splits_lines=source.get("SplitType", "None") == "Line",
        joins_lines=target.get("AssembleWith", "None") == "Line",
        records_per_request=1 if request.get("BatchStrategy") == "SingleRecord" else None,
        payload_bytes=request.get("MaxPayloadInMB", DEFAULT_PAYLOAD_MIB) * MIB,
    )


def bodies(content: bytes, work: Work) -> Iterator[bytes]:
    """The requests that one object becomes: its lines, as many in each as fit, or the object as a whole."""
    if not work.splits_lines:
        yield content
        return
    batch: list[bytes] = []
    for line in content.splitlines(keepends=True):
        is_full = len(batch) == work.records_per_request or sum(map(len, batch)) + len(line) > work.payload_bytes
        if batch and is_full:
            yield b"".join(batch)
            batch = []
        batch.append(line)
    if batch:
        yield b"".join(batch)


def joined(answers: Sequence[bytes], work: Work) -> bytes:
    if not work.joins_lines:
        return b"".join(answers)
    return b"".join(answer.rstrip(b"\n") + b"\n" for answer in answers)
