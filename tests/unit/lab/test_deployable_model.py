from dataclasses import replace
from typing import Any

import pytest

from tests.unit.lab_in_memory import MemoryObjects
from tests.unit.run_samples import completed_result, failed_result, make_cell, make_suite
from tests.unit.serving_in_memory import SAMPLES
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.measurement.run_result import RunResult, run_result_document
from traindyno.core.s3_keys import result_key, samples_key, suite_key, verdict_key
from traindyno.core.serving.deployment import ModelNotServable
from traindyno.core.serving.samples import EvaluationSamples, samples_document
from traindyno.core.suite.choices import Task
from traindyno.core.suite.suite import Measurement
from traindyno.core.suite.suite_file import stored_suite
from traindyno.core.suite.workload import Workload
from traindyno.core.verdict.verdict import judge, verdict_document
from traindyno.lab.serving.deployable_model import find_deployable_model
from traindyno.store.results_bucket import ResultsBucket

EXECUTION = "execution-1"
FAST, SLOW = make_cell("0000000a", "ddp"), make_cell("0000000b", "fsdp")


def measured() -> list[RunResult]:
    return [
        completed_result(cell, trial, step_seconds=seconds)
        for trial in (1, 2, 3)
        for cell, seconds in ((FAST, 0.1), (SLOW, 0.2))
    ]


def bucket_of(
    results: list[RunResult], *, saves: bool = True, samples: EvaluationSamples | None = SAMPLES, **workload: Any
) -> ResultsBucket:
    bucket = MemoryObjects()
    suite = make_suite(
        training={"instance": "ml.p4d.24xlarge"},
        measurement=Measurement(save_model=saves),
        workload=Workload(**{"task": Task.CAUSAL_LM, "examples": 100, **workload}),
    )
    bucket.write_json(suite_key(EXECUTION), stored_suite(suite))
    for result in results:
        run_id = result.run.run_id
        bucket.write_json(result_key(EXECUTION, run_id), run_result_document(result))
        if samples is not None and result.attempts:
            key = samples_key(EXECUTION, run_id, result.attempts[-1].job_name)
            bucket.write_json(key, samples_document(samples))
    verdict = judge(suite, [FAST, SLOW], results)
    bucket.write_json(verdict_key(EXECUTION), verdict_document(verdict))
    return bucket


def test_the_recommended_cells_latest_model_is_found_and_a_named_cells() -> None:
    bucket = bucket_of(measured())
    found = find_deployable_model(EXECUTION, None, bucket)
    assert (found.run.cell.cell_id, found.run.trial) == ("0000000a", 3)
    assert found.job_name == measured()[-2].attempts[-1].job_name
    for name in ("0000000b", "fsdp"):
        assert find_deployable_model(EXECUTION, name, bucket).run.cell.cell_id == "0000000b"


def refusal(bucket: ResultsBucket, cell: str | None = None) -> str:
    with pytest.raises(ModelNotServable) as refused:
        find_deployable_model(EXECUTION, cell, bucket)
    return str(refused.value)


def test_a_suite_that_kept_no_model_says_how_to_keep_one() -> None:
    assert "add to it measurement: {save_model: true}, then run it again" in refusal(bucket_of(measured(), saves=False))


def test_an_execution_that_is_not_there_or_has_no_verdict_yet_is_named() -> None:
    assert "the lab has no suite of execution execution-1: expected" in refusal(MemoryObjects())
    bucket = bucket_of(measured())
    bucket.delete(verdict_key(EXECUTION))
    assert "has no verdict: it is still running, or it failed; name one of its cells with --cell: 0000000a (ddp)" in (
        refusal(bucket)
    )


def test_a_run_that_shared_its_job_has_no_model() -> None:
    results = [replace(each, run=replace(each.run, job_id="j0123abcd-1")) for each in measured()]
    assert "run 0000000a-t3 shared its job with others" in refusal(bucket_of(results))


def test_a_model_without_samples_is_refused() -> None:
    for samples in (None, EvaluationSamples(task=Task.CAUSAL_LM, samples=())):
        assert "left no evaluation samples at s3://results/runs/" in refusal(bucket_of(measured(), samples=samples))


def test_a_cell_that_is_not_there_or_measured_nothing_names_the_others() -> None:
    assert "--cell: 0000000a (ddp), 0000000b (fsdp)" in refusal(bucket_of(measured()), "tensor")
    broken = [failed_result(FAST, 1, Outcome.OUT_OF_MEMORY)]
    assert "expected a completed run, found out_of_memory" in refusal(bucket_of(broken), "ddp")
    assert "recommends no cell; name one of its cells with --cell: 0000000a (ddp)" in refusal(bucket_of(broken))


def test_a_users_script_is_not_served() -> None:
    script: dict[str, Any] = {"task": Task.SCRIPT, "source": "s3://b/x/sourcedir.tar.gz", "entry_point": "train.py"}
    assert "expected one of causal-lm, masked-lm, sequence-classification" in refusal(bucket_of(measured(), **script))
