"""Position of a run in its training, read from the step logs of its job."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from traindyno.aws.client_errors import AwsError
from traindyno.core.jobs.job import Job, step_logs_prefix
from traindyno.core.jobs.journal_format import ENDED
from traindyno.core.s3_keys import checkpoints_prefix
from traindyno.store.attempts import AttemptRow
from traindyno.store.results_bucket import ResultsBucket

STEP_LOG_TAIL_BYTES = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """State of a run; None is unknown. ``place`` is its place in a shared job, from 1."""

    place: int | None = None
    phase: str | None = None
    step: int | None = None


def list_files(attempt: AttemptRow, bucket: ResultsBucket) -> tuple[str, ...]:
    """The keys of what the job has written, as far as it has reached S3: of a shared job, all
    attempts.
    """
    owner = attempt.owner
    if isinstance(owner, Job):
        prefix = checkpoints_prefix(owner.execution_id, owner.job_id)
    else:
        prefix = f"{step_logs_prefix(owner)}{attempt.job_name}/"
    try:
        return tuple(bucket.list_keys(prefix))
    except AwsError:
        return ()  # the next reading may find them


def find_position(attempt: AttemptRow, keys: Sequence[str], bucket: ResultsBucket) -> Position:
    """Position of a run in its training, from the files of its job.

    ``keys`` are the names that ``list_files`` returns.
    """
    owner = attempt.owner
    try:
        if not isinstance(owner, Job):
            return _read_log(keys, bucket)
        place = _place(owner, attempt.job_name, keys)
        return (
            _read_log(_log_keys(owner, place, attempt.job_name, keys), bucket, place)
            if place
            else Position()
        )
    except AwsError:
        return Position()  # the next reading may find it


def ended_in(job: Job, keys: Sequence[str]) -> frozenset[str]:
    """The runs of which an end has reached S3, in any attempt.

    They are recorded when no run of the job is left.
    """
    prefix = checkpoints_prefix(job.execution_id, job.job_id)
    parts = [key.removeprefix(prefix).split("/") for key in keys]
    return frozenset(run_id for run_id, *rest in parts if rest[:1] == [ENDED])


def _place(job: Job, job_name: str, keys: Sequence[str]) -> int | None:
    """Place of the run that has begun to log and has not ended."""
    prefix = checkpoints_prefix(job.execution_id, job.job_id)
    for place, run in enumerate(job.runs, start=1):
        has_ended = any(key.startswith(f"{prefix}{run.run_id}/{ENDED}/{job_name}/") for key in keys)
        if not has_ended and _log_keys(job, place, job_name, keys):
            return place
    return None


def _log_keys(job: Job, place: int, job_name: str, keys: Sequence[str]) -> list[str]:
    prefix = f"{step_logs_prefix(job.runs[place - 1])}{job_name}/"
    return [key for key in keys if key.startswith(prefix)]


def _read_log(keys: Sequence[str], bucket: ResultsBucket, place: int | None = None) -> Position:
    logs = first_rank_logs(keys)
    phase, step = latest_position(bucket.read_tail(logs[-1], STEP_LOG_TAIL_BYTES) if logs else "")
    return Position(place=place, phase=phase, step=step)


def first_rank_logs(keys: Iterable[str]) -> list[str]:
    return [key for key in keys if "/rank-00000." in key]


def log_entries(text: str) -> Iterator[Mapping[str, Any]]:
    """The whole lines of a step log's tail, which begins and ends within a line."""
    for line in text.splitlines():
        with suppress(ValueError):
            record = json.loads(line)
            if isinstance(record, dict):
                yield record


def latest_position(text: str) -> tuple[str | None, int | None]:
    """Phase and step of the last whole lines of a step log; training has the phase None."""
    for record in reversed([*log_entries(text)]):
        kind, step, name = (record.get(field) for field in ("kind", "step", "name"))
        if kind == "step" and isinstance(step, int):
            return None, step
        if kind in {"phase", "begin"} and isinstance(name, str):
            return name, None
    return None, None
