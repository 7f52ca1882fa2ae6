import re
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
from traindyno.slices.serving.client import find_deployable_model
from traindyno.store.results_bucket import ResultsBucket

EXECUTION = "execution-1"
FAST, SLOW = make_cell("0000000a", "ddp"), make_cell("0000000b", "fsdp")


MEASURED = [
    completed_result(cell, trial, step_seconds=seconds)
    for trial in (1, 2, 3)
    for cell, seconds in ((FAST, 0.1), (SLOW, 0.2))
]


def bucket_of(
    results: list[RunResult] = MEASURED,
    saves: bool = True,
    samples: EvaluationSamples | None = SAMPLES,
    **workload: Any,
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
    if results:
        bucket.write_json(verdict_key(EXECUTION), verdict_document(judge(suite, [FAST, SLOW], results)))
    return bucket


def test_the_recommended_cells_latest_model_is_found_and_a_named_cells() -> None:
    bucket = bucket_of()
    _, run, job_name = find_deployable_model(EXECUTION, None, bucket)
    assert (run.cell.cell_id, run.trial) == ("0000000a", 3)
    assert job_name == MEASURED[-2].attempts[-1].job_name
    for name in ("0000000b", "fsdp"):
        assert find_deployable_model(EXECUTION, name, bucket)[1].cell.cell_id == "0000000b"


BROKEN = [failed_result(FAST, 1, Outcome.OUT_OF_MEMORY)]
SCRIPT: dict[str, Any] = {"task": Task.SCRIPT, "source": "s3://b/x/sourcedir.tar.gz", "entry_point": "train.py"}


@pytest.mark.parametrize(
    ("bucket", "cell", "says"),
    [
        (MemoryObjects(), None, "the lab has no suite of execution execution-1: expected"),
        (bucket_of(saves=False), None, "add to it measurement: {save_model: true}, then run it again"),
        (bucket_of([]), None, "has no verdict: it is still running, or it failed; name one"),
        (bucket_of(**SCRIPT), None, "expected one of causal-lm, masked-lm, sequence-classification"),
        (bucket_of(), "tensor", "--cell: 0000000a (ddp), 0000000b (fsdp)"),
        (bucket_of(BROKEN), "ddp", "expected a completed run, found out_of_memory"),
        (bucket_of(BROKEN), None, "recommends no cell; name one of its cells with --cell: 0000000a (ddp)"),
        (bucket_of(samples=None), None, "run 0000000a-t3 left no evaluation samples at s3://results/runs/"),
        (bucket_of(samples=replace(SAMPLES, samples=())), None, "shared its job with others"),
    ],
)
def test_a_refusal_says_what_to_do(bucket: ResultsBucket, cell: str | None, says: str) -> None:
    with pytest.raises(ModelNotServable, match=re.escape(says)):
        find_deployable_model(EXECUTION, cell, bucket)
