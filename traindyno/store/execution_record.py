"""Read from S3 what is kept of an execution."""

from traindyno.core.errors import TraindynoError
from traindyno.core.planning.plan import read_stored_plan
from traindyno.core.s3_keys import plan_key, suite_key
from traindyno.core.suite.fallback_cells import with_cells_of
from traindyno.core.suite.suite_file import read_stored_suite
from traindyno.core.verdict.execution_record import ExecutionRecord
from traindyno.store.results_bucket import ResultsBucket
from traindyno.store.run_results import load_results


class NothingRecorded(TraindynoError):
    """The execution has no results: it was refused, has only begun, or is not one of this lab's."""


def load_record(bucket: ResultsBucket, execution_id: str) -> ExecutionRecord:
    suite, plan = bucket.find_json(suite_key(execution_id)), bucket.find_json(plan_key(execution_id))
    results = load_results(bucket, execution_id) if suite and plan else []
    if suite is None or plan is None or not results:
        raise NothingRecorded(
            f"{execution_id}: expected results of its runs in s3://{bucket.name}, found none; see: traindyno list"
        )
    return ExecutionRecord(
        execution_id=execution_id,
        suite=read_stored_suite(suite),
        cells=with_cells_of(read_stored_plan(plan).cells, (result.run for result in results)),
        results=tuple(results),
    )
