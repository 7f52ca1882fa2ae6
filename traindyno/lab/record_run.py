"""Turn what a run left behind into its result, once: the document in S3, then the row that says it is there."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from traindyno.core.jobs.attempt import LAST_OUTCOMES, Attempt, instance_type_of
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.measurement.run_result import PaidPrice, build_run_result, run_result_document
from traindyno.core.s3_keys import preparation_key, result_key, suite_key
from traindyno.core.step_log.reader import StepLog, StepLogInvalid, read_step_log
from traindyno.core.suite.fallback_cells import run_on
from traindyno.core.suite.preparation import terms_of
from traindyno.core.suite.suite import Run, Suite
from traindyno.core.suite.suite_file import read_stored_suite
from traindyno.core.verdict.run_summary import summary_row
from traindyno.lab.services import LabServices
from traindyno.store.suite_rows import planned_price

OUTCOME_OF_ERROR = {
    "States.Timeout": Outcome.TIMED_OUT,
    **{error.__name__: outcome for error, outcome in LAST_OUTCOMES.items()},
}
NOTHING_LOGGED = "the job completed without logging a step; wrap each step with traindyno.callbacks"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    outcome: Outcome
    message: str | None


def refused_ending(end: Mapping[str, str]) -> Ending | None:
    """Of a run for which no job was started; None if one was."""
    return Ending(outcome=Outcome(end["outcome"]), message=end.get("message")) if "outcome" in end else None


def failed_ending(failure: Mapping[str, str]) -> Ending:
    """Of a run whose submission the state machine gave up."""
    outcome = OUTCOME_OF_ERROR.get(failure["Error"], Outcome.INTERNAL_ERROR)
    return Ending(outcome=outcome, message=f"{failure['Error']}: {failure.get('Cause', '')}"[:2000])


def record_run(run: Run, *, ending: Ending | None, services: LabServices) -> None:
    """``ending`` counts where no attempt has an outcome of its own, and over that of a preparation. Safe to repeat."""
    row = services.suites.read_run(run.execution_id, run.run_id)
    if "outcome" in row:
        return
    attempts = _ended_attempts(row.get("jobs", ()), services)
    step_log, log_problem = _read_step_log(run, services)
    if run.is_preparation:
        final = _preparation_ending(attempts, ending)
    else:
        final = _final_ending(attempts, ending, step_log, log_problem)
    last_job = attempts[-1].job_name if attempts else None
    suite = terms_of(run, read_stored_suite(services.bucket.read_fixed_json(suite_key(run.execution_id))))
    placed_on = instance_type_of(attempts)
    run = run_on(suite, run, placed_on) if placed_on and not run.is_preparation else run
    result = build_run_result(
        run,
        suite=suite,
        outcome=final.outcome,
        attempts=attempts,
        step_log=step_log,
        price=_paid_price(run, suite, services),
        message=final.message,
        log_tail=services.log_tail.read(last_job) if last_job and final.outcome is not Outcome.COMPLETED else (),
        is_simulated=_is_simulated(step_log),
    )
    key_of = preparation_key if run.is_preparation else result_key
    services.bucket.write_json(key_of(run.execution_id, run.run_id), run_result_document(result))
    services.suites.record_run(run.execution_id, run.run_id, summary_row(result))


def _ended_attempts(job_names: Sequence[str], services: LabServices) -> list[Attempt]:
    """Jobs that still run are stopped: nobody waits for them any more."""
    ended = []
    for row in filter(None, map(services.attempts.read, job_names)):
        if row.end:
            ended.append(row.end)
        elif services.attempts.note_stop(row.job_name, Outcome.TIMED_OUT):
            services.jobs.stop(row.job_name)
            ended.append(Attempt(number=row.number, job_name=row.job_name, submitted_at=row.submitted_at))
    return sorted(ended, key=lambda attempt: attempt.number)


def _read_step_log(run: Run, services: LabServices) -> tuple[StepLog | None, str | None]:
    files = services.bucket.step_log_files(run.execution_id, run.run_id)
    try:
        return (read_step_log(files) if files else None), None
    except StepLogInvalid as error:
        return None, str(error)


def _final_ending(
    attempts: Sequence[Attempt], ending: Ending | None, step_log: StepLog | None, log_problem: str | None
) -> Ending:
    last = attempts[-1] if attempts else None
    if last is None or last.outcome is None:
        return ending or Ending(outcome=Outcome.STOPPED_BY_USER, message="stopped before it could be finished")
    if last.outcome is Outcome.COMPLETED and (step_log is None or step_log.measured is None):
        return Ending(outcome=Outcome.USER_CODE_ERROR, message=log_problem or NOTHING_LOGGED)
    return Ending(outcome=last.outcome, message=last.message)


def _preparation_ending(attempts: Sequence[Attempt], ending: Ending | None) -> Ending:
    """It logs no steps, and a job that completed may have left nothing of use."""
    last = attempts[-1] if attempts else None
    if ending is None and last is not None and last.outcome is not None:
        return Ending(outcome=last.outcome, message=last.message)
    return ending or Ending(outcome=Outcome.STOPPED_BY_USER, message="stopped before it could be finished")


def _paid_price(run: Run, suite: Suite, services: LabServices) -> PaidPrice:
    price = planned_price(services.suites.read(run.execution_id) or {}, run.cell.settings.instance)
    if price is None:
        return PaidPrice(usd_per_instance_hour=None)
    return PaidPrice(
        usd_per_instance_hour=price.usd_per_hour,
        region=price.region,
        date=price.as_of,
        source=price.source,
        purchase=suite.purchase.value,
    )


def _is_simulated(step_log: StepLog | None) -> bool:
    return step_log is not None and any(each.facts.get("is_simulated") for each in step_log.environments)
