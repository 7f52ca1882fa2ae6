"""The results of an execution's runs, as they lie in S3."""

from concurrent.futures import ThreadPoolExecutor

from traindyno.aws.results_bucket import ResultsBucket
from traindyno.core.layout import results_prefix
from traindyno.core.measurement.run_result import RunResult, parse_run_result

READS_AT_ONCE = 10  # botocore keeps as many connections


def load_results(bucket: ResultsBucket, execution_id: str) -> list[RunResult]:
    keys = list(bucket.list_keys(results_prefix(execution_id)))
    with ThreadPoolExecutor(READS_AT_ONCE) as pool:
        return [parse_run_result(document) for document in pool.map(bucket.read_json, keys)]
