"""Make the result of a run from its attempts and its step log, once: first the document in S3, then
the run's row.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from traindyno.aws.log_tail import LogTail
from traindyno.aws.training_jobs import TrainingJobs
from traindyno.core.costs.quantity_text import seconds_text
from traindyno.core.costs.summarise import summarise
from traindyno.core.errors import RunsLeft
from traindyno.core.jobs.attempt import LAST_OUTCOMES, Attempt
from traindyno.core.jobs.job import (
    AttemptOwner,
    Job,
    not_started_text,
    owner_text,
    runs_of,
    step_logs_prefix,
)
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.measurement.run_result import (
    PaidPrice,
    RunResult,
    build_run_result,
    run_result_document,
)
from traindyno.core.planning.jobs import runs_again
from traindyno.core.run.tokens import DataPreparation
from traindyno.core.s3_keys import result_key, suite_key
from traindyno.core.step_log.reader import StepLog, StepLogInvalid, read_step_log
from traindyno.core.suite.choices import Purchase
from traindyno.core.suite.suite import Run
from traindyno.core.suite.suite_file import read_stored_suite
from traindyno.lab.attempt_owners import attempts_of
from traindyno.lab.shared_runs import SharedRuns, shared_runs_of
from traindyno.lab.use_case import Failures
from traindyno.sagemaker.failure_reasons import killed_by_torchruns_log
from traindyno.sagemaker.job_names import attempt_number
from traindyno.store.attempts import AttemptRow, AttemptRows
from traindyno.store.executions import ExecutionRow, ExecutionRows
from traindyno.store.owners import OwnerRow, RunRows, SharedJobRows
from traindyno.store.results_bucket import ResultsBucket

OUTCOME_OF_ERROR = {
    "States.Timeout": Outcome.TIMED_OUT,
    **{error.__name__: outcome for error, outcome in LAST_OUTCOMES.items()},
}
NOTHING_LOGGED = "the job completed without logging a step; wrap each step with traindyno.callbacks"


class AttemptRecords(Protocol):
    attempts: AttemptRows
    jobs: TrainingJobs
    bucket: ResultsBucket
    log_tail: LogTail


def ended_attempts(row: OwnerRow, services: AttemptRecords) -> list[Attempt]:
    """Jobs that still run are stopped: no task waits for them any more."""
    return [
        attempt.end or _end_of(attempt, services) for attempt in attempts_of(row, services.attempts)
    ]


def _end_of(attempt: AttemptRow, services: AttemptRecords) -> Attempt:
    if services.attempts.note_stop(attempt.job_name, Outcome.TIMED_OUT):
        services.jobs.stop(attempt.job_name)
    elif (latest := services.attempts.find(attempt.job_name)) and latest.end:
        return latest.end  # it was described after the row was read
    return Attempt(
        number=attempt.number, job_name=attempt.job_name, submitted_at=attempt.submitted_at
    )


def read_run_log(
    logged: Run | DataPreparation, services: AttemptRecords, last: Attempt | None = None
) -> tuple[StepLog | None, str | None]:
    """The step log, or None with the reason why it can't be read.

    What was logged after the attempt ``last`` is left out; a training that continues an earlier one
    has that one's logs too.
    """
    files = services.bucket.step_log_files(step_logs_prefix(logged))
    if last is not None:
        own = last.job_name.removesuffix(str(last.number))
        files = {
            name: lines
            for name, lines in files.items()
            if not name.startswith(own)
            or (attempt_number(name.partition("/")[0]) or 0) <= last.number
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
    """The last lines of the attempt's log, unless the job's parent ended the run; of a shared job,
    those of this run on the host on which it failed. A run that completed may have caught an error.
    """
    if last is None or outcome is Outcome.OUTPACED:
        return ()
    return services.log_tail.read(
        last.job_name, shared_by=run_id if last.share else None, host=host
    )


class RecordRunServices(AttemptRecords, Protocol):
    """Services that recording a run needs.

    ``bucket`` holds the suite and the result, too.
    """

    attempts: AttemptRows
    bucket: ResultsBucket
    executions: ExecutionRows
    runs: RunRows
    shared_jobs: SharedJobRows


@dataclass(frozen=True, slots=True, kw_only=True)
class FinalOutcome:
    outcome: Outcome
    message: str | None


def stopped() -> FinalOutcome:
    """The outcome of a run that was stopped before it could be finished."""
    return FinalOutcome(
        outcome=Outcome.STOPPED_BY_USER, message="stopped before it could be finished"
    )


def refused_outcome(end: Mapping[str, str]) -> FinalOutcome | None:
    """The outcome of a run for which no job was started, or whose shared job the state machine
    stopped retrying; None if its job has ended.
    """
    if "Error" in end:
        outcome = OUTCOME_OF_ERROR.get(end["Error"], Outcome.INTERNAL_ERROR)
        return FinalOutcome(
            outcome=outcome, message=f"{end['Error']}: {end.get('Cause', '')}"[:2000]
        )
    return (
        FinalOutcome(outcome=Outcome(end["outcome"]), message=end.get("message"))
        if "outcome" in end
        else None
    )


def record_runs(
    owner: AttemptOwner,
    *,
    final: FinalOutcome | None,
    services: RecordRunServices,
    may_go_on: Callable[[], bool] = lambda: True,
) -> list[RunResult]:
    """Record each run that has no result yet, with those that the job's parent process added.

    ``final`` is a run's outcome if no attempt has one.

    What a shared job left is read once for all of its runs. One that can't be recorded stops no
    other one; as the order differs from call to call, not even if it ends the function. Raises such
    an error at the end, or RunsLeft when the time is over.
    """
    execution = services.executions.find(owner.execution_id)
    runs = [*runs_of(owner)]
    recorded = list[RunResult]()
    failures = Failures()
    left_behind: tuple[Sequence[Attempt], SharedRuns | None] | None = None
    suite = services.bucket.read_fixed(suite_key(owner.execution_id), read_stored_suite)
    if isinstance(owner, Job) and (again := runs_again(owner, suite)):
        left_behind = _left_behind(owner.runs[0], services)
        ended = left_behind[1].ended if left_behind[1] else ()
        runs += [run for run in again if run.run_id in ended]
    random.shuffle(runs)
    for run in runs:
        if not may_go_on():
            raise RunsLeft(
                f"{owner_text(owner)}: {len(recorded)} runs were recorded when the time was over"
            )
        with failures.kept(execution=run.execution_id, run=run.run_id):
            if not services.runs.read(run.execution_id, run.run_id).is_over:
                left_behind = left_behind or _left_behind(run, services)
                recorded.append(
                    _record_run(run, owner, execution, *left_behind, final=final, services=services)
                )
    failures.raise_first()
    if isinstance(owner, Job):  # nothing remains to be done for its ended attempts
        for row in attempts_of(
            services.shared_jobs.read(owner.execution_id, owner.job_id), services.attempts
        ):
            if row.is_open and row.end:
                services.attempts.close(row.job_name)
    return recorded


def _left_behind(
    run: Run, services: RecordRunServices
) -> tuple[Sequence[Attempt], SharedRuns | None]:
    """The attempts of the run, or of the job that carries it with what its runs have left."""
    if run.job_id is None:
        return ended_attempts(services.runs.read(run.execution_id, run.run_id), services), None
    attempts = ended_attempts(services.shared_jobs.read(run.execution_id, run.job_id), services)
    latest = services.attempts.find(attempts[-1].job_name) if attempts else None
    return attempts, shared_runs_of(latest, services.bucket) if latest else None


def _record_run(
    run: Run,
    owner: AttemptOwner,
    execution: ExecutionRow | None,
    attempts: Sequence[Attempt],
    shared: SharedRuns | None,
    *,
    final: FinalOutcome | None,
    services: RecordRunServices,
) -> RunResult:
    last = attempts[-1] if attempts else None
    host = None
    if shared is not None:
        attempts = shared.attempts_of(run.run_id, attempts)
        last = shared.deciding(run.run_id, attempts)
        host = shared.failed_host(run.run_id, last)
    step_log, log_problem = read_run_log(run, services, last)
    if final is not None and step_log is not None and step_log.measured is not None:
        final = _of_begun_run(final, owner)
    decided = _decide(last, final, step_log, log_problem)
    log_tail = read_log_tail(last, decided.outcome, services, run_id=run.run_id, host=host)
    if killed := killed_by_torchruns_log(decided.message, log_tail):
        decided = replace(decided, outcome=Outcome.KILLED, message=killed)
    suite = services.bucket.read_fixed(suite_key(run.execution_id), read_stored_suite)
    result = build_run_result(
        run,
        suite=suite,
        outcome=decided.outcome,
        attempts=attempts,
        step_log=step_log,
        price=paid_price(execution, run.cell.settings.instance, suite.purchase),
        message=decided.message,
        log_tail=log_tail,
        is_simulated=is_simulated(step_log),
    )
    services.bucket.write_json(
        result_key(run.execution_id, run.run_id), run_result_document(result)
    )
    services.runs.record(run.execution_id, run.run_id, summarise(result))
    return result


def paid_price(
    execution: ExecutionRow | None, instance: str, purchase: Purchase = Purchase.ON_DEMAND
) -> PaidPrice:
    """The price that the suite was planned with."""
    price = execution.prices.get(instance) if execution else None
    if price is None:
        return PaidPrice(usd_per_instance_hour=None)
    return PaidPrice(
        usd_per_instance_hour=price.usd_per_hour,
        region=price.region,
        date=price.as_of,
        source=price.source,
        purchase=purchase.value,
    )


def is_simulated(step_log: StepLog | None) -> bool:
    return step_log is not None and any(
        environment.facts.get("is_simulated") for environment in step_log.environments
    )


def _of_begun_run(final: FinalOutcome, owner: AttemptOwner) -> FinalOutcome:
    """The outcome of a run that has steps of an earlier attempt: it was started, unlike the job
    that was refused after it.
    """
    refused = not_started_text(owner, "")
    message = final.message or ""
    if not message.startswith(refused):
        return final
    reason = message.removeprefix(refused)
    return replace(final, message=f"cut off, and its job was not started again: {reason}")


def _decide(
    last: Attempt | None,
    final: FinalOutcome | None,
    step_log: StepLog | None,
    log_problem: str | None,
) -> FinalOutcome:
    if last is None or last.outcome is None:
        return final or stopped()
    if last.outcome is Outcome.COMPLETED and (step_log is None or step_log.measured is None):
        return FinalOutcome(outcome=Outcome.USER_CODE_ERROR, message=log_problem or NOTHING_LOGGED)
    stood_at = _where_it_stood(last, step_log) if last.outcome is Outcome.TIMED_OUT else ""
    return FinalOutcome(outcome=last.outcome, message=f"{last.message or ''}{stood_at}" or None)


def _where_it_stood(attempt: Attempt, step_log: StepLog | None) -> str:
    """The last step that every process ended: a script that hangs stands after it."""
    session = step_log.measured if step_log else None
    if session is None or not session.common_steps:
        return "; its log has no step"
    ended = max(process.steps[-1].end for process in session.processes)
    # Lines are written once a second, and a script that hangs writes none for its last steps.
    last = f"; it ended at least step {session.common_steps[-1]}, the last one in its log"
    if attempt.ended_at is None:
        return last
    whose = "its" if attempt.share else "the job's"
    return f"{last}, {seconds_text(max(0.0, attempt.ended_at - ended))} before {whose} end"
