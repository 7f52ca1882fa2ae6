"""The end of a preparation: mark what it made as ready, record its result, and answer the
execution.
"""

from typing import Protocol

from traindyno.aws.task_answers import TaskAnswers
from traindyno.core.errors import PreparationFailed
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.measurement.run_phases import measure_phases
from traindyno.core.measurement.run_result import PreparationResult, preparation_result_document
from traindyno.core.run.tokens import DataPreparation
from traindyno.core.s3_keys import preparation_key
from traindyno.lab.record_run import (
    AttemptRecords,
    FinalOutcome,
    ended_attempts,
    is_simulated,
    paid_price,
    read_log_tail,
    read_run_log,
    stopped,
)
from traindyno.store.attempts import AttemptRow
from traindyno.store.executions import ExecutionRows
from traindyno.store.owners import PreparationRows, PreparationSummary
from traindyno.store.results_bucket import ResultsBucket, TokenCache

HINTS = {
    Outcome.TIMED_OUT: "; set a higher preparation.max_seconds",
    Outcome.OUT_OF_MEMORY: "; set preparation.instance to a type with more memory",
    Outcome.CAPACITY_UNAVAILABLE: "; set preparation.instance to another type",
}


class PreparationRecords(AttemptRecords, Protocol):
    executions: ExecutionRows
    preparations: PreparationRows
    bucket: ResultsBucket


class PreparationAnswers(Protocol):
    preparations: PreparationRows
    answers: TaskAnswers


def record_preparation(
    preparation: DataPreparation, row: AttemptRow, services: PreparationRecords
) -> None:
    """Record a preparation that has ended. Safe to repeat.

    The tokens are marked as ready before the result is written. ``row`` is the last attempt, ended.
    """
    execution_id = preparation.execution_id
    name = preparation.preparation_id
    known = services.preparations.read(execution_id, name)
    if known.is_over:
        return
    problem = _keep_tokens(preparation, row, services)
    attempts = ended_attempts(known, services)
    last = attempts[-1] if attempts else None
    final = problem or stopped()
    if problem is None and last is not None and last.outcome is not None:
        final = FinalOutcome(outcome=last.outcome, message=last.message)
    step_log, _ = read_run_log(preparation, services)
    result = PreparationResult(
        preparation=preparation,
        outcome=final.outcome,
        message=final.message,
        log_tail=read_log_tail(last, final.outcome, services),
        attempts=tuple(attempts),
        phases_seconds=measure_phases(
            attempts, step_log.measured if step_log else None, None, warmup_steps=0
        ),
        price=paid_price(services.executions.find(execution_id), preparation.instance),
        is_simulated=is_simulated(step_log),
    )
    services.bucket.write_json(
        preparation_key(execution_id, name), preparation_result_document(result)
    )
    summary = PreparationSummary(
        outcome=result.outcome, message=result.message, billable_seconds=result.billable_seconds
    )
    services.preparations.record(execution_id, name, summary)


def answer_preparation(
    preparation: DataPreparation, token: str, services: PreparationAnswers
) -> bool | None:
    """None if it has no result yet; else whether a task waited."""
    summary = services.preparations.read(
        preparation.execution_id, preparation.preparation_id
    ).summary
    if summary is None:
        return None
    if summary.outcome is Outcome.COMPLETED:
        return services.answers.succeed(token, {"preparation_id": preparation.preparation_id})
    what = summary.message or summary.outcome.replace("_", " ")
    return fail_preparation(preparation, token, f"{what}{HINTS.get(summary.outcome, '')}", services)


def fail_preparation(
    preparation: DataPreparation, token: str, message: str, services: PreparationAnswers
) -> bool:
    """The text becomes the execution's cause, as a refusal's would."""
    what = (
        "model could not be copied from the Hub"
        if preparation.stages_model
        else "data could not be prepared"
    )
    cause = f"the {what}, so no run was started: {message}"
    return services.answers.fail(token, error_name=PreparationFailed.__name__, cause=cause)


def _keep_tokens(
    preparation: DataPreparation, row: AttemptRow, services: PreparationRecords
) -> FinalOutcome | None:
    """The outcome of a job that completed without usable tokens."""
    if row.end is None or row.end.outcome is not Outcome.COMPLETED:
        return None
    cache = TokenCache(services.bucket)
    problem = cache.keep(
        preparation.key, row.job_name, made_at=row.end.ended_at or row.submitted_at
    )
    return FinalOutcome(outcome=Outcome.INTERNAL_ERROR, message=problem) if problem else None
