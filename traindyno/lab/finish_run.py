"""Hear of a job's end: describe it, say what it means for its run, and answer the task that waits for it."""

from traindyno.core.errors import ServiceFault
from traindyno.core.jobs.attempt import Attempt, ended_attempt
from traindyno.core.jobs.job_end import JobEnd
from traindyno.core.jobs.warm_pool import WarmPool
from traindyno.core.lab_names import jobs_prefix
from traindyno.lab.prepare_data import answer_preparation, conclude_preparation
from traindyno.lab.record_run import record_run
from traindyno.lab.services import LabServices
from traindyno.lab.warm_pools import billed_usd, settle_pool, time_usd
from traindyno.sagemaker.job_description import has_ended, read_job_end
from traindyno.store.attempt_rows import AttemptRow

# After this, a job that SageMaker does not know of was never started: SubmitRun was cut off before it could.
NEVER_STARTED_SECONDS = 600


def finish_run(job_name: str, *, lab: str, services: LabServices, now: float) -> None:
    """Safe for events that are repeated, late, or about another lab's job."""
    row = services.attempts.read(job_name)
    if row is None or not row.is_open or row.end is not None:
        return
    end, pool = _find_end(row, lab=lab, services=services, now=now)
    ended = services.attempts.record_end(end) if end else None
    if ended:
        _settle(ended, services)
        if pool:
            settle_pool(pool, services=services)
        report_end(ended, services=services)


def report_end(row: AttemptRow, *, services: LabServices) -> None:
    """Answer the task; where nobody waits any more, see that the run is recorded nevertheless."""
    run = row.run
    if run.is_preparation and row.end and row.end.outcome:
        conclude_preparation(row, services)
    if not _answer(row, services) and "outcome" not in services.suites.read_run(run.execution_id, run.run_id):
        if not services.suites.is_stopping(run.execution_id):
            return  # the task was started again and will find this end, or the sweep will find the execution over
        record_run(run, ending=None, services=services)
    services.attempts.close(row.job_name)


def _find_end(
    row: AttemptRow, *, lab: str, services: LabServices, now: float
) -> tuple[Attempt | None, WarmPool | None]:
    """And the instances that the job was started on, where an earlier one had left them."""
    job = services.jobs.describe(row.job_name)
    if job is not None and has_ended(job):
        end = read_job_end(job, stopped_for=row.stopped_for)
        keeps_warm = bool(end.may_keep_warm_seconds)
        pool = services.jobs.pool_taken_by(row.job_name, jobs_prefix(lab)) if keeps_warm else None
        return _ended(row, end, started_warm=pool is not None if keeps_warm else None), pool
    if job is None and now - row.submitted_at > NEVER_STARTED_SECONDS:
        return _never_started(row), None
    return None, None


def _ended(row: AttemptRow, end: JobEnd, *, started_warm: bool | None) -> Attempt:
    return ended_attempt(
        end, number=row.number, is_last=row.is_last, submitted_at=row.submitted_at, started_warm=started_warm
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


def _settle(row: AttemptRow, services: LabServices) -> None:
    """A job whose billable time is unknown keeps its worst case; so do instances that may still be kept warm."""
    end = row.end
    if end is None or end.billable_seconds is None:
        return
    services.spending.settle(
        row.run.execution_id,
        reserved_usd=row.reserved_usd - time_usd(row, end.keep_warm_seconds),
        spent_usd=billed_usd(row, end),
        pool_of=row.job_name if end.keep_warm_seconds else None,
    )


def _answer(row: AttemptRow, services: LabServices) -> bool:
    end = row.end
    assert end is not None, "only an ended attempt is reported"
    if end.outcome is None:
        return services.answers.fail(row.token, error_name=str(end.error), cause=end.message or "")
    if row.run.is_preparation:
        return bool(answer_preparation(row.run, row.token, services))
    return services.answers.succeed(row.token, {"job_name": row.job_name})
