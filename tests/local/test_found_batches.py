"""The largest batch of a built-in model, from the search under the memory that the local type has, to the verdict."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest

from tests.local.aws_double import AwsDouble
from tests.local.jobs import BUCKET, client, wait_until
from tests.local.running_service import RunningService, start_service
from tests.unit.sagemaker.test_request import SETTINGS
from tests.unit.suites import unprepared_document
from traindyno import bundle
from traindyno.core.jobs.attempt import Attempt
from traindyno.core.jobs.job import Job
from traindyno.core.jobs.journal import JobJournal, read_job_journal
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.jobs.run_attempts import attempts_of_run
from traindyno.core.measurement.run_result import PaidPrice, RunResult, build_run_result
from traindyno.core.s3_keys import checkpoints_prefix, job_document_key
from traindyno.core.step_log.reader import StepLog, read_step_log
from traindyno.core.suite.cells import expand_cells
from traindyno.core.suite.checks.suite_check import parse_suite
from traindyno.core.suite.runs import trial_runs
from traindyno.core.suite.suite import Run, Suite
from traindyno.core.verdict.found_batch import CellBatch
from traindyno.core.verdict.verdict import judge
from traindyno.sagemaker.failure_reasons import outcome_of
from traindyno.sagemaker.job_document import job_document
from traindyno.sagemaker.shared_request import build_shared_job_request

pytestmark = [pytest.mark.local, pytest.mark.nightly]
MEMORY_GIB = 0.75
STEPS = 6
LAB = replace(SETTINGS, results_bucket=BUCKET, source_s3_uri=f"s3://{BUCKET}/code/abc/sourcedir.tar.gz")
# Little to compute, and attention weights of 1 MiB for each sample.
MODEL = {"model_type": "gpt2", "vocab_size": 64, "n_embd": 16, "n_layer": 1, "n_head": 16, "n_positions": 128}


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


class SharedJob:
    def __init__(self, aws: AwsDouble, sagemaker: Any, suite: Suite, job_id: str) -> None:
        aws.objects[f"{BUCKET}/code/abc/sourcedir.tar.gz"] = bundle.pack(bundle.training_files())
        self.runs = trial_runs("execution-1", expand_cells(suite), [1])
        self.suite, self._job = suite, Job(execution_id="execution-1", job_id=job_id, runs=self.runs)
        document = json.dumps(job_document(self._job, suite, LAB)).encode()
        aws.objects[f"{BUCKET}/{job_document_key('execution-1', job_id)}"] = document
        request = build_shared_job_request(self._job, suite, attempt=1, settings=LAB)
        sagemaker.create_training_job(**request)
        self.described = wait_until(sagemaker, request["TrainingJobName"], seconds=300)
        self._objects = aws.objects

    def _files(self, folder: str = "") -> dict[str, bytes]:
        prefix = f"{BUCKET}/{checkpoints_prefix('execution-1', self._job.job_id)}{folder}"
        return {key.removeprefix(prefix): body for key, body in sorted(self._objects.items()) if key.startswith(prefix)}

    def journal(self) -> JobJournal:
        return read_job_journal(self._files(), job_name=self.described["TrainingJobName"], host_count=1)

    def log(self, run: Run) -> StepLog:
        files = self._files(f"{run.run_id}/step_log/")
        return read_step_log({name: body.decode().splitlines(keepends=True) for name, body in files.items()})

    def outcome(self, run: Run) -> Outcome:
        return outcome_of(self.journal().ends[run.run_id])[0]


def test_the_found_batch_is_the_largest_one_and_is_in_the_verdict(aws: AwsDouble, service: RunningService) -> None:
    sagemaker = client("sagemaker", service.endpoint)
    searched = SharedJob(aws, sagemaker, suite_with([{"search": "largest", "begin": 24}]), "j1-1")
    (run,) = searched.runs
    assert searched.outcome(run) is Outcome.COMPLETED, outcome_of(searched.journal().ends[run.run_id])
    finding = searched.journal().ends[run.run_id].batch
    assert finding is not None
    too_large = min(probe.batch for probe in finding.probes if not probe.fits)
    assert finding.fits
    assert finding.batch < too_large <= 1 + finding.batch * 9 / 8

    result = result_of(searched, run)
    verdict = judge(searched.suite, expand_cells(searched.suite), [result])
    assert verdict.recommended == run.cell.cell_id
    assert verdict.row(run.cell.cell_id).part(CellBatch).found == finding.batch
    steps = searched.log(run).sessions[-1].processes[0].steps
    assert {steps[place].samples for place in range(len(steps))} == {finding.batch}

    # Without a search: what the probes called too large is too large for a run of its own.
    fixed = SharedJob(aws, sagemaker, suite_with([finding.batch, too_large]), "j2-1")
    outcomes = {each.cell.settings.batch_size: fixed.outcome(each) for each in fixed.runs}
    assert outcomes == {finding.batch: Outcome.COMPLETED, too_large: Outcome.OUT_OF_MEMORY}


def result_of(job: SharedJob, run: Run) -> RunResult:
    """As the lab records it."""
    described = job.described
    whole = Attempt(
        number=1,
        job_name=described["TrainingJobName"],
        outcome=Outcome.COMPLETED,
        billable_seconds=described["BillableTimeInSeconds"],
        training_seconds=described["TrainingTimeInSeconds"],
        instance_type="local.cpu",
    )
    planned = [each.run_id for each in job.runs]
    attempts = attempts_of_run(run.run_id, [(whole, job.journal())], planned=planned, outcome_of=outcome_of)
    return build_run_result(
        run,
        suite=job.suite,
        outcome=job.outcome(run),
        attempts=attempts,
        step_log=job.log(run),
        price=PaidPrice(usd_per_instance_hour=None),
    )
