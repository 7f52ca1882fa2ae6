"""The end of a preparation: keep its tokens, record what it came to, and answer the execution that waits for it."""

from traindyno.core.errors import PreparationFailed
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.suite.suite import Run
from traindyno.lab.record_run import Ending, record_run
from traindyno.lab.services import LabServices
from traindyno.store.attempt_rows import AttemptRow
from traindyno.store.token_cache import TokenCache

HINTS = {
    Outcome.TIMED_OUT.value: "; a higher preparation.max_seconds would let it finish",
    Outcome.OUT_OF_MEMORY.value: "; a type with more memory can be named as preparation.instance",
    Outcome.CAPACITY_UNAVAILABLE.value: "; another type can be named as preparation.instance",
}


def conclude_preparation(row: AttemptRow, services: LabServices) -> None:
    """Of a job that leads to no further attempt. The tokens are marked as ready before anyone hears of it."""
    assert row.run.tokens is not None
    assert row.end is not None
    ending = None
    if row.end.outcome is Outcome.COMPLETED:
        cache = TokenCache(services.bucket)
        problem = cache.keep(row.run.tokens.key, row.job_name, made_at=row.end.ended_at or row.submitted_at)
        ending = Ending(outcome=Outcome.INTERNAL_ERROR, message=problem) if problem else None
    record_run(row.run, ending=ending, services=services)


def answer_preparation(run: Run, token: str, services: LabServices) -> bool | None:
    """None if it isn't concluded yet; else whether somebody waited."""
    row = services.suites.read_run(run.execution_id, run.run_id)
    match row.get("outcome"):
        case None:
            return None
        case Outcome.COMPLETED.value:
            return services.answers.succeed(token, {"run_id": run.run_id})
        case outcome:
            what = row.get("message") or str(outcome).replace("_", " ")
            return fail_preparation(token, f"{what}{HINTS.get(str(outcome), '')}", services)


def fail_preparation(token: str, message: str, services: LabServices) -> bool:
    """The text is the execution's cause, as a refusal's would be."""
    cause = f"the data could not be prepared, so no run was started: {message}"
    return services.answers.fail(token, error_name=PreparationFailed.__name__, cause=cause)
