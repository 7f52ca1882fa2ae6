"""A job of several runs in the local SageMaker service, and what it leaves in the bucket."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tests.local.aws_double import AwsDouble
from tests.local.jobs import BUCKET, wait_until
from tests.unit.sagemaker.test_request import SETTINGS
from traindyno.core.jobs.job import Job
from traindyno.core.jobs.journal import JobJournal, read_job_journal
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.s3_keys import checkpoints_prefix, job_document_key
from traindyno.core.step_log.content import StepLog
from traindyno.core.step_log.reader import read_step_log
from traindyno.core.suite.suite import Run, Suite
from traindyno.sagemaker.failure_reasons import outcome_of
from traindyno.sagemaker.job_document import job_document
from traindyno.sagemaker.shared_request import build_shared_job_request

SOURCE_KEY = f"{BUCKET}/code/abc/sourcedir.tar.gz"
LAB = replace(SETTINGS, results_bucket=BUCKET, source_s3_uri=f"s3://{SOURCE_KEY}")


class SharedJob:
    """Its document is in the bucket; ``source``: of its training code, which a simulated job needs
    none of.
    """

    def __init__(
        self,
        aws: AwsDouble,
        suite: Suite,
        runs: Sequence[Run],
        job_id: str,
        source: bytes | None = None,
    ) -> None:
        self.suite = suite
        self.runs = tuple(runs)
        self._objects = aws.objects
        self.job = Job(execution_id="execution-1", job_id=job_id, runs=self.runs)
        self.run_ids = [run.run_id for run in runs]
        self.document_key = f"{BUCKET}/{job_document_key('execution-1', job_id)}"
        aws.objects[self.document_key] = json.dumps(job_document(self.job, suite, LAB)).encode()
        if source is not None:
            aws.objects[SOURCE_KEY] = source

    def request(self, attempt: int = 1) -> dict[str, Any]:
        return build_shared_job_request(self.job, self.suite, attempt=attempt, settings=LAB)

    def run(self, sagemaker: Any) -> dict[str, Any]:
        """The described job at its end."""
        sagemaker.create_training_job(**self.request())
        return wait_until(sagemaker, self.request()["TrainingJobName"], seconds=300)

    def files(self, folder: str = "") -> dict[str, bytes]:
        """The tree of the job's checkpoint folder in S3, or of a folder in it."""
        prefix = f"{BUCKET}/{checkpoints_prefix('execution-1', self.job.job_id)}{folder}"
        return {
            key.removeprefix(prefix): body
            for key, body in sorted(self._objects.items())
            if key.startswith(prefix)
        }

    def journal(self, described: dict[str, Any]) -> JobJournal:
        hosts = described["ResourceConfig"]["InstanceCount"]
        return read_job_journal(
            self.files(), job_name=described["TrainingJobName"], host_count=hosts
        )

    def outcomes(self, described: dict[str, Any]) -> dict[str, Outcome]:
        return {run_id: outcome_of(end)[0] for run_id, end in self.journal(described).ends.items()}

    def log(self, run_id: str) -> StepLog:
        files = self.files(f"{run_id}/step_log/")
        return read_step_log(
            {name: body.decode().splitlines(keepends=True) for name, body in files.items()}
        )

    def logged_steps(self, run_id: str) -> list[int]:
        """The steps of each process of the run's last session."""
        return [len(process.steps) for process in self.log(run_id).sessions[-1].processes]
