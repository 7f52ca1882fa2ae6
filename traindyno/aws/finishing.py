"""Hear of a job's end: describe it, say what it means for its run, and answer the task that waits for it."""

from decimal import Decimal

from traindyno.aws.attempt_rows import AttemptRow
from traindyno.aws.lab_services import LabServices
from traindyno.aws.recording import record_run
from traindyno.core.costs.prices import cost_usd
from traindyno.core.errors import ServiceFault
from traindyno.core.jobs.attempt import Attempt
from traindyno.core.jobs.job_attempt import ended_attempt
from traindyno.core.jobs.job_end import has_ended, read_job_end

# After this, a job that SageMaker does not know of was never started: SubmitRun was cut off before it could.
NEVER_STARTED_SECONDS = 600


def finish_run(job_name: str, *, services: LabServices, now: float) -> None:
    """Safe for events that are repeated, late, or about another lab's job."""
    row = services.attempts.read(job_name)
    if row is None or not row.is_open or row.end is not None:
        return
    end = _find_end(row, services, now)
    ended = services.attempts.record_end(end) if end else None
    if ended:
        _settle(ended, services)
        report_end(ended, services=services)


def report_end(row: AttemptRow, *, services: LabServices) -> None:
    """Answer the task; where nobody waits any more, see that the run is recorded nevertheless."""
    run = row.run
    if not _answer(row, services) and "outcome" not in services.suites.read_run(run.execution_id, run.run_id):
        if not services.suites.is_stopping(run.execution_id):
            return  # the task was started again and will find this end, or the sweep will find the execution over
        record_run(run, ending=None, services=services)
    services.attempts.close(row.job_name)


def _find_end(row: AttemptRow, services: LabServices, now: float) -> Attempt | None:
    job = services.jobs.describe(row.job_name)
    if job is not None and has_ended(job):
        return ended_attempt(
            read_job_end(job, stopped_for=row.stopped_for),
            number=row.number,
            is_last=row.is_last,
            submitted_at=row.submitted_at,
            image_uri=job["AlgorithmSpecification"].get("TrainingImage"),
        )
    if job is None and now - row.submitted_at > NEVER_STARTED_SECONDS:
        return Attempt(
            number=row.number,
            job_name=row.job_name,
            error=ServiceFault.__name__,
            message="the job was never started",
            submitted_at=row.submitted_at,
            billable_seconds=0,
        )
    return None


def _settle(row: AttemptRow, services: LabServices) -> None:
    """A job whose billable time is unknown keeps its worst case."""
    billable = row.end.billable_seconds if row.end else None
    if billable is not None:
        spent = cost_usd(Decimal(str(billable)), row.run.cell.settings.instance_count, row.usd_per_hour)
        services.spending.settle(row.run.execution_id, reserved_usd=row.reserved_usd, spent_usd=spent)


def _answer(row: AttemptRow, services: LabServices) -> bool:
    end = row.end
    assert end is not None, "only an ended attempt is reported"
    if end.outcome is None:
        return services.answers.fail(row.token, error_name=str(end.error), cause=end.message or "")
    return services.answers.succeed(row.token, {"job_name": row.job_name})
