"""What the attempts of a run or a preparation left behind: their ends, their step logs and the last lines they said."""

from typing import Protocol

from traindyno.aws.log_tail import LogTail
from traindyno.aws.training_jobs import TrainingJobs
from traindyno.core.jobs.attempt import Attempt
from traindyno.core.jobs.job import runs_of, step_logs_prefix
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.step_log.reader import StepLog, StepLogInvalid, read_step_log
from traindyno.core.suite.preparation import DataPreparation
from traindyno.core.suite.suite import Run
from traindyno.lab.attempt_owners import attempts_of
from traindyno.sagemaker.job_names import attempt_number
from traindyno.store.attempts import AttemptRow, AttemptRows
from traindyno.store.owners import OwnerRow
from traindyno.store.results_bucket import ResultsBucket


class AttemptRecords(Protocol):
    attempts: AttemptRows
    jobs: TrainingJobs
    bucket: ResultsBucket
    log_tail: LogTail


def ended_attempts(row: OwnerRow, services: AttemptRecords, *, run_id: str | None = None) -> list[Attempt]:
    """Jobs that still run are stopped: no task waits for them any more. ``run_id``: of a shared job's run, of which the
    first one stops it, because each is recorded.
    """
    return [
        attempt.end or _end_of(attempt, services, stops=run_id in (None, *_first_run(attempt)))
        for attempt in attempts_of(row, services.attempts)
    ]


def _first_run(attempt: AttemptRow) -> list[str]:
    return [run.run_id for run in runs_of(attempt.owner)[:1]]


def _end_of(attempt: AttemptRow, services: AttemptRecords, *, stops: bool) -> Attempt:
    if services.attempts.note_stop(attempt.job_name, Outcome.TIMED_OUT):
        if stops:
            services.jobs.stop(attempt.job_name)
    elif (latest := services.attempts.find(attempt.job_name)) and latest.end:
        return latest.end  # it was described after the row was read
    return Attempt(number=attempt.number, job_name=attempt.job_name, submitted_at=attempt.submitted_at)


def read_run_log(
    logged: Run | DataPreparation, services: AttemptRecords, last: Attempt | None = None
) -> tuple[StepLog | None, str | None]:
    """The step log, or None with the reason why it can't be read. What was logged after the attempt ``last`` is left
    out.
    """
    files = services.bucket.step_log_files(step_logs_prefix(logged))
    if last is not None:
        files = {
            name: lines for name, lines in files.items() if (attempt_number(name.partition("/")[0]) or 0) <= last.number
        }
    try:
        return (read_step_log(files) if files else None), None
    except StepLogInvalid as error:
        return None, str(error)


def read_log_tail(
    last: Attempt | None,
    outcome: Outcome,
    services: AttemptRecords,
    *,
    run_id: str | None = None,
    host: str | None = None,
) -> tuple[str, ...]:
    """The last lines of the attempt's log, unless the job's parent ended the run; of a shared job, those of this run on
    the host on which it failed. A run that completed may have caught an error.
    """
    if last is None or outcome is Outcome.OUTPACED:
        return ()
    return services.log_tail.read(last.job_name, shared_by=run_id if last.share else None, host=host)
