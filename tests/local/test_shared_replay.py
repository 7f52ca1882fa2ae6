"""Simulated shared jobs in the service: their bill, their interruptions, and the attempt after one that failed."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.local.aws_double import AwsDouble
from tests.local.jobs import BUCKET
from tests.local.test_replay_engine import PLAIN_TRACE, replaying, run_one, statuses
from tests.unit.sagemaker.test_request import SETTINGS
from tests.unit.suites import unprepared_suite
from traindyno.core.jobs.job import Job
from traindyno.core.jobs.journal import JobJournal, read_job_journal
from traindyno.core.s3_keys import checkpoints_prefix, job_document_key
from traindyno.core.suite.cells import expand_cells
from traindyno.core.suite.runs import trial_runs
from traindyno.core.suite.suite import Suite
from traindyno.sagemaker.job_document import job_document
from traindyno.sagemaker.request import build_training_job_request
from traindyno.sagemaker.shared_request import build_shared_job_request

LAB = replace(SETTINGS, results_bucket=BUCKET)
ON_SPOT = {"purchase": "spot", "measurement": {"trials": 2, "checkpoint_every_steps": 1}}


def prepared(aws: AwsDouble, job_id: str, **changes: Any) -> tuple[Job, Suite]:
    """A job of four runs, whose document is in S3."""
    suite = unprepared_suite(**changes)
    runs = trial_runs("execution-1", expand_cells(suite), [1, 2])
    job = Job(execution_id="execution-1", job_id=job_id, runs=runs)
    document = json.dumps(job_document(job, suite, LAB)).encode()
    aws.objects[f"{BUCKET}/{job_document_key('execution-1', job_id)}"] = document
    return job, suite


def request_of(job: Job, suite: Suite, attempt: int = 1) -> dict[str, Any]:
    return build_shared_job_request(job, suite, attempt=attempt, settings=LAB)


def journal_of(aws: AwsDouble, job: Job, described: dict[str, Any]) -> JobJournal:
    prefix = f"{BUCKET}/{checkpoints_prefix('execution-1', job.job_id)}"
    files = {key.removeprefix(prefix): body for key, body in aws.objects.items() if key.startswith(prefix)}
    return read_job_journal(files, job_name=described["TrainingJobName"], host_count=1)


def test_a_shared_job_bills_one_start_and_the_training_of_all_its_runs(aws: AwsDouble, tmp_path: Path) -> None:
    job, suite = prepared(aws, "j1-1")
    with replaying(tmp_path, aws) as running:
        described = run_one(running, request_of(job, suite))
    # 3 s of download, four runs of 20 s, 2 s of upload
    assert described["BillableTimeInSeconds"] == 85
    journal = journal_of(aws, job, described)
    assert journal.began == tuple(run.run_id for run in job.runs)
    assert journal.ends.keys() == {*journal.began}
    assert journal.runs_seconds == pytest.approx(80, abs=0.01)


def test_with_a_start_of_300_seconds_sharing_costs_less_than_a_third(aws: AwsDouble, tmp_path: Path) -> None:
    """The comparison is with the bill of the same four runs in separate jobs."""
    job, suite = prepared(aws, "j1-4")
    separate = [
        build_training_job_request(replace(run, job_id=None), suite, attempt=1, settings=LAB) for run in job.runs
    ]
    traces = {"slow_start": {**PLAIN_TRACE, "download_seconds": 300.0}}
    with replaying(tmp_path, aws, traces=traces) as running:
        billed = [run_one(running, request)["BillableTimeInSeconds"] for request in (request_of(job, suite), *separate)]
    # 300 s, runs of 20 s, and 2 s of upload
    assert billed == [382, *[322] * 4]
    assert billed[0] / sum(billed[1:]) < 1 / 3


def test_a_shared_job_goes_on_after_an_interruption_and_after_a_fault(aws: AwsDouble, tmp_path: Path) -> None:
    job, suite = prepared(aws, "j1-2", **ON_SPOT)
    planned = {run.run_id for run in job.runs}
    named = [
        {"name_contains": "-a1", "fault": "internal_error"},
        {"name_contains": "-a2", "fault": "spot_interruption"},
    ]
    with replaying(tmp_path, aws, seed=20, named=named) as running:
        failed, resumed = (run_one(running, request_of(job, suite, attempt)) for attempt in (1, 2))
    assert (failed["TrainingJobStatus"], resumed["TrainingJobStatus"]) == ("Failed", "Completed")
    assert statuses(resumed).count("Training") == 2
    first, second = (journal_of(aws, job, described) for described in (failed, resumed))
    assert 0 < len(first.ends) < len(planned)
    assert first.ends.keys() | second.ends.keys() == planned
    assert not first.ends.keys() & second.ends.keys()


def test_a_shared_job_without_its_document_fails_with_a_reason(aws: AwsDouble, tmp_path: Path) -> None:
    job, suite = prepared(aws, "j1-3")
    del aws.objects[f"{BUCKET}/{job_document_key('execution-1', 'j1-3')}"]
    with replaying(tmp_path, aws) as running:
        described = run_one(running, request_of(job, suite))
    assert described["TrainingJobStatus"] == "Failed"
    assert "NoSuchKey" in described["FailureReason"]
    assert "jobs/j1-3.json" in described["FailureReason"]
