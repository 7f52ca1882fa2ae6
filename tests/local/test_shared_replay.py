"""Simulated shared jobs in the service: their bill, their interruptions, and the attempt after one
that failed.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.local.aws_double import AwsDouble
from tests.local.shared_job import LAB, SharedJob
from tests.local.test_replay_engine import PLAIN_TRACE, replaying, run_one, statuses
from tests.unit.suites import unprepared_suite
from traindyno.core.suite.runs import trial_runs
from traindyno.sagemaker.request import build_training_job_request

ON_SPOT = {"purchase": "spot", "measurement": {"trials": 2, "checkpoint_every_steps": 1}}


def prepared(aws: AwsDouble, job_id: str, **changes: Any) -> SharedJob:
    """A job of four runs."""
    suite = unprepared_suite(**changes)
    return SharedJob(aws, suite, trial_runs("execution-1", suite.cells, [1, 2]), job_id)


def test_with_a_start_of_300_seconds_sharing_costs_less_than_a_third(
    aws: AwsDouble, tmp_path: Path
) -> None:
    """The comparison is with the bill of the same four runs in separate jobs."""
    shared = prepared(aws, "j1-4")
    separate = [
        build_training_job_request(replace(run, job_id=None), shared.suite, attempt=1, settings=LAB)
        for run in shared.runs
    ]
    traces = {"slow_start": {**PLAIN_TRACE, "download_seconds": 300.0}}
    with replaying(tmp_path, aws, traces=traces) as running:
        billed = [
            run_one(running, request)["BillableTimeInSeconds"]
            for request in (shared.request(), *separate)
        ]
    # 300 s, runs of 20 s, and 2 s of upload
    assert billed == [382, *[322] * 4]
    assert billed[0] / sum(billed[1:]) < 1 / 3


def test_a_shared_job_goes_on_after_an_interruption_and_after_a_fault(
    aws: AwsDouble, tmp_path: Path
) -> None:
    shared = prepared(aws, "j1-2", **ON_SPOT)
    planned = {*shared.run_ids}
    named = [
        {"name_contains": "-a1", "fault": "internal_error"},
        {"name_contains": "-a2", "fault": "spot_interruption"},
    ]
    with replaying(tmp_path, aws, seed=20, named=named) as running:
        failed, resumed = (run_one(running, shared.request(attempt)) for attempt in (1, 2))
    assert (failed["TrainingJobStatus"], resumed["TrainingJobStatus"]) == ("Failed", "Completed")
    assert statuses(resumed).count("Training") == 2
    first, second = map(shared.journal, (failed, resumed))
    assert 0 < len(first.ends) < len(planned)
    assert first.ends.keys() | second.ends.keys() == planned
    assert not first.ends.keys() & second.ends.keys()


def test_a_shared_job_without_its_document_fails_with_a_reason(
    aws: AwsDouble, tmp_path: Path
) -> None:
    shared = prepared(aws, "j1-3")
    del aws.objects[shared.document_key]
    with replaying(tmp_path, aws) as running:
        described = run_one(running, shared.request())
    assert described["TrainingJobStatus"] == "Failed"
    assert "NoSuchKey" in described["FailureReason"]
    assert "jobs/j1-3.json" in described["FailureReason"]
