"""Runs batch transform jobs on this machine: sends every object under the input's prefix to the model's container."""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from localcloud.sagemaker_service.host.toolkit import UnsupportedJob
from localcloud.sagemaker_service.hosting.hosting import TransformJob, TransformStatus
from localcloud.sagemaker_service.hosting.hosting_engine import (
    CAUSED_BY_THE_REQUEST,
    HostingContext,
    HostingEngine,
    with_last_lines,
)
from localcloud.sagemaker_service.hosting.hosting_view import transform_event
from localcloud.sagemaker_service.hosting.model_container import (
    ContainerFailed,
    LogDestination,
    ModelContainer,
    StartInterrupted,
)
from localcloud.sagemaker_service.jobs.job import FAILURE_REASON_LIMIT
from localcloud.sagemaker_service.jobs.job_store import NewEvent
from localcloud.sagemaker_service.service_health import INTERNAL_ERROR, internal_error
from localcloud.sagemaker_service.storage.s3_transfer import DataUnavailable, relative_name, split_uri

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
class TransformWork:
    """What a transform job's request says about its input and output."""

    input_uri: str
    output_uri: str
    headers: dict[str, str]
    splits_lines: bool
    joins_lines: bool
    records_per_request: int | None
    payload_bytes: int


class TransformEngine(HostingEngine):
    def __init__(self, context: HostingContext) -> None:
        super().__init__(context)
        self._working: dict[str, ModelContainer] = {}

    def start(self) -> None:
        """Fails the jobs that were in progress when the service ended, with SageMaker's internal error; those that were
        asked to stop have stopped.
        """
        for job in self._store.all(TransformJob):
            if job.status in ENDED:
                continue
            is_stopping = job.status is TransformStatus.STOPPING
            status, reason = (
                (TransformStatus.STOPPED, None) if is_stopping else (TransformStatus.FAILED, INTERNAL_ERROR)
            )
            self.move(job.name, status, reason, at_ms=self._clock.continued_ms())

    def run(self, name: str) -> None:
        self._start_thread(name, self._run, kind="transform")

    def stop(self, name: str) -> None:
        """Ends the job, also while its model works on a request."""
        self.move(name, TransformStatus.STOPPING)
        with self._lock:
            container = self._working.get(name)
            if container is not None:
                container.interrupt()

    def move(
        self, name: str, status: TransformStatus, failure_reason: str | None = None, *, at_ms: int | None = None
    ) -> None:
        """``at_ms``: when; None: now. A job's times never go back."""
        with self._lock:
            job = self._store.get(TransformJob, name)
            if job is None or job.status in ENDED:
                return
            if job.status is TransformStatus.STOPPING and status is TransformStatus.IN_PROGRESS:
                return  # the job was stopped before its thread began
            now_ms = max(self._clock.now_ms() if at_ms is None else at_ms, job.modified_ms)
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
        with self._clock.running(not_before_ms=self._modified_ms(name)):
            status, reason = self._end_of(name)
            if status is TransformStatus.FAILED and self._is_stopped(name):
                status, reason = TransformStatus.STOPPED, None  # its processes were told to end
            ended_ms = self._clock.now_ms()  # writing it may take longer, which is not billed
            if status in ENDED:
                self._write(lambda: self.move(name, status, reason, at_ms=ended_ms))

    def _modified_ms(self, name: str) -> int:
        job = self._store.get(TransformJob, name)
        return 0 if job is None else job.modified_ms

    def _end_of(self, name: str) -> tuple[TransformStatus, str | None]:
        """Does the job's work and returns its final status, with the reason of a failure."""
        try:
            self._transform(name)
        except (Stopped, StartInterrupted):
            # If the service ends, the job stays in progress, and the next start fails it.
            return (TransformStatus.IN_PROGRESS if self._ending.is_set() else TransformStatus.STOPPED), None
        except ContainerFailed as error:
            return TransformStatus.FAILED, with_last_lines(f"{SEE_LOGS}.", error)
        except (Refused, *CAUSED_BY_THE_REQUEST) as error:
            return TransformStatus.FAILED, f"ClientError: {str(error).removeprefix('ClientError: ')}"
        except Exception as error:  # whatever fails, the job needs its end: callers wait for it
            LOG.exception("transform job %s could not be run", name)
            return TransformStatus.FAILED, internal_error(error)
        return TransformStatus.COMPLETED, None

    def _transform(self, name: str) -> None:
        job = self._store.get(TransformJob, name)
        if job is None:
            raise UnsupportedJob(f'Could not find transform job "{name}".')
        work = read_transform_work(job)
        log_to = LogDestination(group=LOG_GROUP, stream=name)
        container = self._container(job.request["ModelName"], f"transforms/{name}", log_to)
        self.move(name, TransformStatus.IN_PROGRESS)
        with container, self._interruptible(name, container):
            container.start(lambda: self._is_stopping(name))
            for source, target in self._objects(work, container.folder):
                answers = [self._ask(container, name, body, work) for body in bodies(source.read_bytes(), work)]
                result = container.folder / "answer.out"
                result.write_bytes(joined(answers, work))
                self._transfer.upload(result, target)

    def _objects(self, work: TransformWork, folder: Path) -> Iterator[tuple[Path, str]]:
        """Downloads each input object and yields its file with the S3 URI of its answers."""
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

    def _ask(self, container: ModelContainer, name: str, body: bytes, work: TransformWork) -> bytes:
        if self._is_stopping(name):
            raise Stopped
        try:
            answer = container.invoke(body, work.headers)
        except OSError as error:
            raise container.failure() from error
        if answer.status != 200:
            text = answer.body.decode(errors="replace")[:500]
            raise Refused(f"the container answered {answer.status} to a request of {len(body)} bytes: {text}")
        return answer.body

    @contextmanager
    def _interruptible(self, name: str, container: ModelContainer) -> Iterator[None]:
        with self._lock:
            self._working[name] = container
        try:
            yield
        finally:
            with self._lock:
                del self._working[name]

    def _is_stopping(self, name: str) -> bool:
        return self._ending.is_set() or self._is_stopped(name)

    def _is_stopped(self, name: str) -> bool:
        job = self._store.get(TransformJob, name)
        return job is None or job.status is TransformStatus.STOPPING


def read_transform_work(job: TransformJob) -> TransformWork:
    request: Any = job.request
    source, target = request["TransformInput"], request["TransformOutput"]
    headers = {"Content-Type": source.get("ContentType", "application/octet-stream")}
    if "Accept" in target:
        headers["Accept"] = target["Accept"]
    return TransformWork(
        input_uri=source["DataSource"]["S3DataSource"]["S3Uri"],
        output_uri=target["S3OutputPath"],
        headers=headers,
        splits_lines=source.get("SplitType", "None") == "Line",
        joins_lines=target.get("AssembleWith", "None") == "Line",
        records_per_request=1 if request.get("BatchStrategy") == "SingleRecord" else None,
        payload_bytes=request.get("MaxPayloadInMB", DEFAULT_PAYLOAD_MIB) * MIB,
    )


def bodies(content: bytes, work: TransformWork) -> Iterator[bytes]:
    """The bodies of the requests for one object: each has as many lines as fit, or the whole object."""
    if not work.splits_lines:
        yield content
        return
    batch: list[bytes] = []
    size = 0
    for line in content.splitlines(keepends=True):
        is_full = len(batch) == work.records_per_request or size + len(line) > work.payload_bytes
        if batch and is_full:
            yield b"".join(batch)
            batch, size = [], 0
        batch.append(line)
        size += len(line)
    if batch:
        yield b"".join(batch)


def joined(answers: Sequence[bytes], work: TransformWork) -> bytes:
    if not work.joins_lines:
        return b"".join(answers)
    return b"".join(answer.rstrip(b"\n") + b"\n" for answer in answers)
