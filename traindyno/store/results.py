"""The results of an execution's runs and of its preparations, read from S3."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from traindyno.core.errors import TraindynoError
from traindyno.core.measurement.run_result import (
    PreparationResult,
    RunResult,
    parse_preparation_result,
    parse_run_result,
)
from traindyno.core.planning.plan import read_stored_plan
from traindyno.core.planning.waves import run_ids_of
from traindyno.core.s3_keys import (
    plan_key,
    preparations_prefix,
    results_prefix,
    rounds_prefix,
    suite_key,
)
from traindyno.core.suite.suite_file import read_stored_suite
from traindyno.core.verdict.comparison import ExecutionRecord
from traindyno.store.results_bucket import Document, ObjectMissing, ResultsBucket

READS_AT_ONCE = 10  # botocore keeps as many connections


class NothingRecorded(TraindynoError):
    """The execution has no results: it was refused, has just started, or is not in this lab."""


def load_record(bucket: ResultsBucket, execution_id: str) -> ExecutionRecord:
    """Suite, cells and results of an execution. Raises NothingRecorded without results."""
    with suppress(ObjectMissing):
        record = read_record(bucket, execution_id)
        if record.results:
            return record
    raise NothingRecorded(
        f"{execution_id} has no results of runs in s3://{bucket.name}; see: traindyno list"
    )


def read_record(bucket: ResultsBucket, execution_id: str) -> ExecutionRecord:
    """There may be no results."""
    planned = bucket.read_as(plan_key(execution_id), read_stored_plan)
    return ExecutionRecord(
        execution_id=execution_id,
        suite=bucket.read_as(suite_key(execution_id), read_stored_suite),
        cells=planned.cells,
        results=tuple(load_results(bucket, execution_id)),
        host_priors=planned.host_priors,
    )


def load_results(bucket: ResultsBucket, execution_id: str) -> list[RunResult]:
    return _load(bucket, results_prefix(execution_id), parse_run_result)


def load_preparations(bucket: ResultsBucket, execution_id: str) -> list[PreparationResult]:
    """The results of the jobs that prepared the data; they count only for their cost."""
    return _load(bucket, preparations_prefix(execution_id), parse_preparation_result)


def load_planned_runs(bucket: ResultsBucket, execution_id: str) -> list[str]:
    """The ids of the runs that the rounds planned so far."""
    keys = bucket.list_keys(rounds_prefix(execution_id))
    return [run_id for key in keys for run_id in bucket.read_as(key, run_ids_of)]


def _load(bucket: ResultsBucket, prefix: str, parse: Callable[[Any], Document]) -> list[Document]:
    keys = list(bucket.list_keys(prefix))
    with ThreadPoolExecutor(READS_AT_ONCE) as pool:
        return list(pool.map(lambda key: bucket.read_as(key, parse), keys))
