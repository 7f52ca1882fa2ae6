"""The results of an execution's runs and of its preparations, as they lie in S3."""

from concurrent.futures import ThreadPoolExecutor

from traindyno.core.measurement.run_result import RunResult, parse_run_result
from traindyno.core.s3_keys import preparations_prefix, results_prefix
from traindyno.store.results_bucket import ResultsBucket

READS_AT_ONCE = 10  # botocore keeps as many connections


def load_results(bucket: ResultsBucket, execution_id: str) -> list[RunResult]:
    return _load(bucket, results_prefix(execution_id))


def load_preparations(bucket: ResultsBucket, execution_id: str) -> list[RunResult]:
    """What became of the jobs that prepared the data: of interest for what they cost."""
    return _load(bucket, preparations_prefix(execution_id))


def _load(bucket: ResultsBucket, prefix: str) -> list[RunResult]:
    keys = list(bucket.list_keys(prefix))
    with ThreadPoolExecutor(READS_AT_ONCE) as pool:
        return [parse_run_result(document) for document in pool.map(bucket.read_json, keys)]
