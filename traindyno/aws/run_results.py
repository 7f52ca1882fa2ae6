"""The results of an execution's runs, as they lie in S3."""

from traindyno.aws.results_bucket import ResultsBucket
from traindyno.core.layout import results_prefix
from traindyno.core.run_result import RunResult, parse_run_result


def load_results(bucket: ResultsBucket, execution_id: str) -> list[RunResult]:
    return [parse_run_result(bucket.read_json(key)) for key in bucket.list_keys(results_prefix(execution_id))]
