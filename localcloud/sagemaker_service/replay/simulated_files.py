"""Writes a simulated job's files to S3 where a real job has them: its step log, and a preparation's manifest."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from localcloud.sagemaker_service.jobs.job import TrainingJob, Transition
from localcloud.sagemaker_service.jobs.job_view import is_uncompressed, output_uri
from localcloud.sagemaker_service.jobs.job_work import JobWork, read_work
from localcloud.sagemaker_service.replay.simulated_log import write_stretch
from localcloud.sagemaker_service.replay.trace import Trace
from localcloud.sagemaker_service.storage.s3_transfer import split_uri
from traindyno.core.jobs.journal_format import DOCUMENT_CHANNEL, ENDED, JOURNAL
from traindyno.core.step_log.line import DIRECTORY_VARIABLE
from traindyno.core.suite.preparation import TOKENS_MANIFEST, tokens_manifest

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

DEFAULT_CHECKPOINTS = "/opt/ml/checkpoints"


class DocumentMissing(Exception):
    """A shared job has no document that says which runs it carries."""


class SimulatedFiles:
    def __init__(self, client: "S3Client") -> None:
        self._client = client

    def write(self, job: TrainingJob, trace: Trace, work: JobWork, training: Transition, *, until_ms: int) -> int:
        """Writes the log of the training until ``until_ms``. Returns how many steps the job has done."""
        stretch = write_stretch(
            job, trace, work, start_ms=training.start_ms, until_ms=until_ms, first_step=job.simulated_steps
        )
        place = _step_log_uri(job)
        if place is not None:
            bucket, prefix = split_uri(place)
            for name, text in stretch.files.items():
                self._client.put_object(Bucket=bucket, Key=f"{prefix}/{name}", Body=text.encode())
        return stretch.next_step

    def read_document(self, job: TrainingJob) -> dict[str, Any]:
        """The document of a shared job."""
        for channel in job.request.get("InputDataConfig", ()):
            if channel["ChannelName"] == DOCUMENT_CHANNEL:
                bucket, key = split_uri(channel["DataSource"]["S3DataSource"]["S3Uri"])
                try:
                    body = self._client.get_object(Bucket=bucket, Key=key)["Body"].read()
                except self._client.exceptions.NoSuchKey as error:
                    raise DocumentMissing(f"s3://{bucket}/{key}, the document of {job.name}, is not there") from error
                document: dict[str, Any] = json.loads(body)
                return document
        raise DocumentMissing(f"{job.name} has no channel {DOCUMENT_CHANNEL}, which names its runs")

    def ended_runs(self, job: TrainingJob) -> frozenset[str]:
        """The runs of a shared job of which each host wrote in one attempt how they ended."""
        keys = (key.split("/") for key in self._list(job))
        written = Counter((key[0], key[2]) for key in keys if len(key) == 4 and key[1] == ENDED)
        return frozenset(run_id for (run_id, _), hosts in written.items() if hosts >= job.instance_count)

    def read_journals(self, job: TrainingJob) -> dict[str, bytes]:
        """Key below the checkpoint prefix of the shared job → contents, of all its attempts."""
        bucket, prefix = split_uri(_checkpoints_uri(job))
        keys = [key for key in self._list(job) if key.startswith(f"{JOURNAL}/")]
        return {key: self._client.get_object(Bucket=bucket, Key=f"{prefix}/{key}")["Body"].read() for key in keys}

    def _list(self, job: TrainingJob) -> Iterator[str]:
        bucket, prefix = split_uri(_checkpoints_uri(job))
        for page in self._client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=f"{prefix}/"):
            yield from (entry["Key"].removeprefix(f"{prefix}/") for entry in page.get("Contents", []))

    def write_shared(self, job: TrainingJob, files: Iterable[tuple[str, bytes]]) -> None:
        bucket, prefix = split_uri(_checkpoints_uri(job))
        for name, contents in files:
            self._client.put_object(Bucket=bucket, Key=f"{prefix}/{name}", Body=contents)

    def write_tokens(self, job: TrainingJob) -> None:
        """Writes the output of a completed preparation: a manifest without tokens, marked as simulated."""
        preparation = read_work(job).values.get("preparation")
        if not isinstance(preparation, Mapping) or not is_uncompressed(job):
            return
        manifest = {**tokens_manifest(str(preparation.get("key")), {}), "is_simulated": True}
        bucket, prefix = split_uri(f"{output_uri(job)}/output/model")
        self._client.put_object(Bucket=bucket, Key=f"{prefix}/{TOKENS_MANIFEST}", Body=json.dumps(manifest).encode())


def _checkpoints_uri(job: TrainingJob) -> str:
    uri: str = job.request["CheckpointConfig"]["S3Uri"]
    return uri.rstrip("/")


def _step_log_uri(job: TrainingJob) -> str | None:
    """The S3 prefix of the job's step log; None if it is not in a folder of checkpoints that the job keeps."""
    checkpoints = job.request.get("CheckpointConfig")
    folder = job.request.get("Environment", {}).get(DIRECTORY_VARIABLE)
    if checkpoints is None or folder is None:
        return None
    local_path = checkpoints.get("LocalPath", DEFAULT_CHECKPOINTS)
    if not folder.startswith(f"{local_path}/"):
        return None
    return f"{checkpoints['S3Uri'].rstrip('/')}/{folder.removeprefix(f'{local_path}/')}/{job.name}"
