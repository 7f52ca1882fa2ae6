"""A training job has ended: describe it, record its outcome, and answer the task that waits for
it.
"""

from dataclasses import replace
from typing import Protocol

from traindyno.aws.task_answers import TaskAnswers
from traindyno.aws.training_jobs import TrainingJobs
from traindyno.core.errors import JobTimeUsed, ServiceFault
from traindyno.core.jobs.attempt import Attempt, ended_attempt
from traindyno.core.jobs.job import Job
from traindyno.core.jobs.job_end import JobEnd
from traindyno.core.jobs.journal_format import STEP_LOG
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.jobs.run_attempts import shared_end
from traindyno.core.run.tokens import DataPreparation
from traindyno.core.s3_keys import checkpoints_prefix, suite_key
from traindyno.core.suite.suite import Run
from traindyno.core.suite.suite_file import read_stored_suite
from traindyno.lab.attempt_owners import OwnerServices, attempts_of, is_recorded, row_of
from traindyno.lab.budget import BudgetServices, record_end
from traindyno.lab.prepare_data import (
    PreparationAnswers,
    PreparationRecords,
    answer_preparation,
    record_preparation,
)
from traindyno.lab.record_run import RecordRunServices, record_runs
from traindyno.lab.shared_runs import shared_runs_of
from traindyno.sagemaker.job_description import has_ended, read_job_end
from traindyno.store.attempts import AttemptRow, AttemptRows
from traindyno.store.executions import ExecutionRows
from traindyno.store.results_bucket import ResultsBucket

# After this time, a job that SageMaker does not know was never started: SubmitRun ended before.
NEVER_STARTED_SECONDS = 600


class FinishRunServices(
    OwnerServices,
    BudgetServices,
    RecordRunServices,
    PreparationRecords,
    PreparationAnswers,
    Protocol,
):
    executions: ExecutionRows
    attempts: AttemptRows
    bucket: ResultsBucket
    jobs: TrainingJobs
    answers: TaskAnswers


def finish_run(job_name: str, *, services: FinishRunServices, now: float) -> AttemptRow | None:
    """The ended attempt; None if there is nothing to do.

    Safe for events that are repeated, late or of another lab.
    """
    row = services.attempts.find(job_name)
    if row is None or not row.is_open:
        return None
    if row.end is not None:  # an earlier call failed between its end and the answer
        _report_end(row, services=services)
        return row
    end = _find_end(row, services=services, now=now)
    ended = record_end(row, end, services=services) if end else None
    if ended:
        _report_end(ended, services=services)
    return ended


def _report_end(row: AttemptRow, *, services: FinishRunServices) -> None:
    """Answer the task. If no task waits, still record the runs or the preparation.

    The latest attempt of a shared job stays open until all its runs are recorded: the execution may
    be stopped before another task records them.
    """
    owner = row.owner
    if isinstance(owner, DataPreparation) and row.end and row.end.outcome:
        record_preparation(owner, row, services)
    is_done = _answer(row, services) and not isinstance(owner, Job)
    if not is_done and not is_recorded(owner, services) and not _has_next(row, services):
        execution = services.executions.find(owner.execution_id)
        if execution is None or not execution.is_stopping:
            # the task was started again and will find this end, or the sweep will find the
            # execution over
            return
        if isinstance(owner, DataPreparation):
            record_preparation(owner, row, services)
        record_runs(owner, final=None, services=services)
    services.attempts.close(row.job_name)


def _has_next(row: AttemptRow, services: FinishRunServices) -> bool:
    """Whether a later attempt of a shared job has taken over."""
    if not isinstance(row.owner, Job):
        return False
    return attempts_of(row_of(row.owner, services), services.attempts)[-1].number > row.number


def _find_end(row: AttemptRow, *, services: FinishRunServices, now: float) -> Attempt | None:
    job = services.jobs.describe(row.job_name)
    if job is not None and has_ended(job):
        return _ended(row, read_job_end(job, stopped_for=row.stopped_for), services)
    if job is None and now - row.submitted_at > NEVER_STARTED_SECONDS:
        return _never_started(row)
    return None


def _ended(row: AttemptRow, end: JobEnd, services: FinishRunServices) -> Attempt:
    shared = shared_runs_of(row, services.bucket)
    is_cut_off = end.outcome is Outcome.TIMED_OUT or end.next_attempt is not None
    if is_cut_off and isinstance(row.owner, Run) and _continues(row, row.owner, services):
        end = replace(end, outcome=None, next_attempt=JobTimeUsed)
    ended = ended_attempt(
        end,
        number=row.number,
        is_last=row.is_last and shared is None,
        submitted_at=row.submitted_at,
    )
    if shared is None:
        return ended
    return shared_end(
        ended, shared.progress(row.job_name), is_last=row.is_last, stopped_for=row.stopped_for
    )


def _continues(row: AttemptRow, run: Run, services: FinishRunServices) -> bool:
    """Whether another job does the rest: the suite chains jobs, and this one has left a
    checkpoint.
    """
    suite = services.bucket.read_fixed(suite_key(run.execution_id), read_stored_suite)
    prefix = checkpoints_prefix(run.execution_id, run.run_id)
    return suite.limits.chain_jobs and services.bucket.has_changed(
        prefix, since=row.submitted_at, besides=f"{prefix}{STEP_LOG}/"
    )


def _never_started(row: AttemptRow) -> Attempt:
    return Attempt(
        number=row.number,
        job_name=row.job_name,
        error=ServiceFault.__name__,
        message="the job was never started",
        submitted_at=row.submitted_at,
        billable_seconds=0,
    )


def _answer(row: AttemptRow, services: FinishRunServices) -> bool:
    """Whether a task waited."""
    end = row.end
    assert end is not None, "only an ended attempt is reported"
    if end.outcome is None:
        return services.answers.fail(row.token, error_name=str(end.error), cause=end.message or "")
    if isinstance(row.owner, DataPreparation):
        return bool(answer_preparation(row.owner, row.token, services))
    return services.answers.succeed(row.token, {"job_name": row.job_name})
