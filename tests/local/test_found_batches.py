"""The largest batch of a built-in model, from the search under the memory that the local type has,
to the verdict.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from tests.local.aws_double import AwsDouble
from tests.local.jobs import client
from tests.local.running_service import RunningService, start_service
from tests.local.shared_job import SharedJob
from tests.unit.suites import unprepared_document
from traindyno import bundle
from traindyno.core.jobs.attempt import Attempt
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.jobs.run_attempts import attempts_of_run
from traindyno.core.measurement.run_result import PaidPrice, RunResult, build_run_result
from traindyno.core.suite.checks.suite_check import parse_suite
from traindyno.core.suite.runs import trial_runs
from traindyno.core.suite.suite import Run, Suite
from traindyno.core.verdict.found_batch import CellBatch
from traindyno.core.verdict.judge import judge
from traindyno.sagemaker.failure_reasons import outcome_of

pytestmark = [pytest.mark.local, pytest.mark.nightly]
MEMORY_GIB = 0.75
STEPS = 6
# Little to compute, and attention weights of 1 MiB for each sample.
MODEL = {
    "model_type": "gpt2",
    "vocab_size": 64,
    "n_embd": 16,
    "n_layer": 1,
    "n_head": 16,
    "n_positions": 128,
}


@pytest.fixture(scope="module")
def service(aws: AwsDouble, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    options = ("--checkpoint-sync-seconds", "0.2", "--local-memory-gib", str(MEMORY_GIB))
    with start_service(tmp_path_factory.mktemp("state"), aws.endpoint, *options) as running:
        yield running


def suite_with(batches: Sequence[Any]) -> Suite:
    document = unprepared_document(
        training={"instance": "local.cpu", "strategy": "single"},
        matrix={"batch_size_per_device": list(batches)},
        baseline={"batch_size_per_device": batches[0]},
        goal="fastest",
        measurement={"trials": 1, "max_steps": STEPS},
    )
    document["workload"] |= {
        "task": "causal-lm",
        "model": {"config": MODEL},
        "sequence_length": MODEL["n_positions"],
        "examples": 100_000,
        "environment": {"OMP_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "1"},
    }
    return parse_suite(document)


def job_of(aws: AwsDouble, job_id: str, batches: Sequence[Any]) -> SharedJob:
    suite = suite_with(batches)
    runs = trial_runs("execution-1", suite.cells, [1])
    return SharedJob(aws, suite, runs, job_id, bundle.pack(bundle.training_files()))


def test_the_found_batch_is_the_largest_one_and_is_in_the_verdict(
    aws: AwsDouble, service: RunningService
) -> None:
    sagemaker = client("sagemaker", service.endpoint)
    searched = job_of(aws, "j1-1", [{"search": "largest", "begin": 24}])
    described = searched.run(sagemaker)
    (run,) = searched.runs
    end = searched.journal(described).ends[run.run_id]
    assert outcome_of(end)[0] is Outcome.COMPLETED, outcome_of(end)
    finding = end.batch
    assert finding is not None
    too_large = min(probe.batch for probe in finding.probes if not probe.fits)
    assert finding.fits
    assert finding.batch < too_large <= 1 + finding.batch * 9 / 8

    result = result_of(searched, run, described)
    verdict = judge(searched.suite, searched.suite.cells, [result])
    assert verdict.recommended == run.cell.cell_id
    assert verdict.row(run.cell.cell_id).part(CellBatch).found == finding.batch
    steps = searched.log(run.run_id).sessions[-1].processes[0].steps
    assert {steps[place].samples for place in range(len(steps))} == {finding.batch}

    # Without a search: what the probes called too large is too large for a run of its own.
    fixed = job_of(aws, "j2-1", [finding.batch, too_large])
    ends = fixed.outcomes(fixed.run(sagemaker))
    outcomes = {
        fixed_run.cell.settings.batch_size: ends[fixed_run.run_id] for fixed_run in fixed.runs
    }
    assert outcomes == {finding.batch: Outcome.COMPLETED, too_large: Outcome.OUT_OF_MEMORY}


def result_of(job: SharedJob, run: Run, described: dict[str, Any]) -> RunResult:
    """As the lab records it."""
    whole = Attempt(
        number=1,
        job_name=described["TrainingJobName"],
        outcome=Outcome.COMPLETED,
        billable_seconds=described["BillableTimeInSeconds"],
        training_seconds=described["TrainingTimeInSeconds"],
        instance_type="local.cpu",
    )
    journal = job.journal(described)
    attempts = attempts_of_run(
        run.run_id, [(whole, journal)], planned=job.run_ids, outcome_of=outcome_of
    )
    return build_run_result(
        run,
        suite=job.suite,
        outcome=outcome_of(journal.ends[run.run_id])[0],
        attempts=attempts,
        step_log=job.log(run.run_id),
        price=PaidPrice(usd_per_instance_hour=None),
    )
