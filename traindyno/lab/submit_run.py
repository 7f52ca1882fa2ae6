"""Start the training job of a run's next attempt, at most once, and answer the waiting task where none is started."""

import json
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from math import ceil
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from traindyno.aws.training_jobs import JobRefused
from traindyno.core.errors import NextAttempt, ServiceFault, SlotUnavailable, TurnLater
from traindyno.core.jobs.attempt import instance_type_of
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.planning.admission import Decision, admit_cost, admit_time, worst_case_usd
from traindyno.core.s3_keys import suite_key
from traindyno.core.suite.fallback_cells import accepted_types
from traindyno.core.suite.preparation import terms_of
from traindyno.core.suite.suite import Run, Suite
from traindyno.core.suite.suite_file import read_stored_suite
from traindyno.lab.prepare_data import answer_preparation, fail_preparation
from traindyno.lab.services import LabServices
from traindyno.lab.warm_pools import settle_ended_pools
from traindyno.sagemaker.job_settings import JobSettings
from traindyno.sagemaker.request import build_training_job_request, training_job_name
from traindyno.store.attempt_rows import AttemptRow
from traindyno.store.start_slots import Turn
from traindyno.store.suite_rows import planned_price

# A function that waits is paid for; a state that waits costs two transitions.
LONGEST_SLEEP_SECONDS = 5.0
# A run that comes later than this to its turn takes another.
TURN_KEPT_SECONDS = 30.0


def submit_run(
    run: Run,
    token: str,
    *,
    services: LabServices,
    settings: JobSettings,
    now: float,
    sleep: Callable[[float], None],
    clock: Callable[[], float] = time.time,
) -> None:
    """Answers the task itself where no job is started: an error that is raised would lose its name on the way."""
    try:
        _submit(run, token, services=services, settings=settings, now=now, sleep=sleep, clock=clock)
    except TurnLater as later:
        at = datetime.fromtimestamp(ceil(later.at), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        services.answers.fail(token, error_name=type(later).__name__, cause=json.dumps({"at": at}))
    except JobRefused as refused:
        if run.is_preparation:
            fail_preparation(token, str(refused), services)
            return
        services.answers.succeed(token, {"outcome": refused.outcome.value, "message": str(refused)[:1000]})
    except NextAttempt as error:
        services.answers.fail(token, error_name=type(error).__name__, cause=str(error))
    except (ClientError, BotoCoreError) as error:
        services.answers.fail(token, error_name=ServiceFault.__name__, cause=f"run {run.run_id}: {error}")


def _submit(
    run: Run,
    token: str,
    *,
    services: LabServices,
    settings: JobSettings,
    now: float,
    sleep: Callable[[float], None],
    clock: Callable[[], float] = time.time,
) -> None:
    suite = terms_of(run, read_stored_suite(services.bucket.read_fixed_json(suite_key(run.execution_id))))
    known = services.suites.read_run(run.execution_id, run.run_id)
    latest = _latest_attempt(known, services)
    if latest and latest.end is None:
        # The task was started again by a fault between the two; its job may exist and must not be paid twice.
        _take_over(latest, token, suite=suite, services=services, settings=settings)
    elif latest and latest.end and latest.end.outcome:
        _answer_again(latest, token, services)
    else:
        facts = services.suites.read(run.execution_id) or {}
        _refuse_late(run, suite, facts, now)
        placed_on = _placed_on(run, suite, known, services)
        usd_by_type = _usd_by_type(run, suite, facts, placed_on)
        usd_per_hour = max(usd_by_type.values())
        at = _turn_at(run, known.get("start_at"), services=services, settings=settings, now=now)
        between = settings.seconds_between_starts
        turn = Turn(at=at, turns=services.turns, seconds_between=between, clock=clock, sleep=sleep) if at else None
        number = latest.number + 1 if latest else 1
        row = AttemptRow(
            job_name=training_job_name(run, suite.name, attempt=number, lab=settings.lab),
            run=run,
            number=number,
            is_last=number >= suite.limits.max_attempts,
            token=token,
            submitted_at=now,
            usd_per_hour=usd_per_hour,
            reserved_usd=worst_case_usd(suite, run.cell.settings, usd_per_hour),
            usd_by_type=usd_by_type if len(usd_by_type) > 1 else {},
            placed_on=placed_on,
        )
        _start(row, suite=suite, services=services, settings=settings, turn=turn)


def _answer_again(row: AttemptRow, token: str, services: LabServices) -> None:
    """The task was started again by a fault after its job had ended."""
    if not row.run.is_preparation:
        services.answers.succeed(token, {"job_name": row.job_name})
    elif answer_preparation(row.run, token, services) is None:
        raise ServiceFault(f"{row.job_name} has ended and is not concluded yet")


def _latest_attempt(known: Mapping[str, Any], services: LabServices) -> AttemptRow | None:
    return max(_attempts(known, services), key=lambda row: row.number, default=None)


def _attempts(known: Mapping[str, Any], services: LabServices) -> list[AttemptRow]:
    return [row for name in known.get("jobs", ()) if (row := services.attempts.read(name))]


def _turn_at(run: Run, noted: Any, *, services: LabServices, settings: JobSettings, now: float) -> float | None:
    """None where there is no limit. A turn that is far off is noted, and the state machine waits for it."""
    between = settings.seconds_between_starts
    if not between:
        return None
    is_good = noted is not None and now < float(noted) + TURN_KEPT_SECONDS
    at = float(noted) if is_good else services.turns.take(now=now, seconds_between=between)
    if at > now + LONGEST_SLEEP_SECONDS:
        if not is_good:
            services.suites.note_turn(run.execution_id, run.run_id, at)
        raise TurnLater(at)
    return at


def _refuse_late(run: Run, suite: Suite, facts: Mapping[str, Any], now: float) -> None:
    if facts.get("stopping"):
        raise JobRefused(Outcome.STOPPED_BY_USER, f"run {run.run_id}: its execution was stopped before it was started")
    admission = admit_time(began=float(facts.get("started_at", now)), now=now, limits=suite.limits)
    if admission.decision is Decision.REFUSE:
        raise JobRefused(Outcome.TIMED_OUT, f"run {run.run_id} was not started: {admission.reason}")


def _take_over(row: AttemptRow, token: str, *, suite: Suite, services: LabServices, settings: JobSettings) -> None:
    if not services.attempts.hand_over(row.job_name, token):
        raise ServiceFault(f"{row.job_name} ended while it was being taken over")
    services.jobs.start(_request(row, suite, settings))


def _start(row: AttemptRow, *, suite: Suite, services: LabServices, settings: JobSettings, turn: Turn | None) -> None:
    """The row comes first: the job's end may be told before CreateTrainingJob has answered."""
    request = _request(row, suite, settings)
    jobs = services.jobs  # making its client takes a cold function half a second, which is not to delay its turn
    _hold_back(row, suite, services, settings.lab)
    services.suites.note_job(row.run.execution_id, row.run.run_id, row.job_name)
    is_ours = services.attempts.create(row)
    if not is_ours:
        _release(row, services)
    if turn:
        turn.wait()
    try:
        jobs.start(request)
    except ServiceFault:
        raise  # the job may exist: the row stays, and the next try takes it over
    except (JobRefused, NextAttempt):
        if is_ours:
            services.attempts.discard(row.job_name)
            services.suites.forget_job(row.run.execution_id, row.run.run_id, row.job_name)
            _release(row, services)
        raise


def _request(row: AttemptRow, suite: Suite, settings: JobSettings) -> dict[str, Any]:
    return build_training_job_request(row.run, suite, attempt=row.number, settings=settings, placed_on=row.placed_on)


def _placed_on(run: Run, suite: Suite, known: Mapping[str, Any], services: LabServices) -> str | None:
    """Where the run may go to several types: the one on which it has begun, so that it is measured on one only."""
    if run.cell.settings.instance not in suite.instance_preferences:
        return None
    ends = [row.end for row in _attempts(known, services) if row.end]
    return instance_type_of(sorted(ends, key=lambda end: end.number))


def _hold_back(row: AttemptRow, suite: Suite, services: LabServices, lab: str) -> None:
    execution_id, cap_usd = row.run.execution_id, suite.limits.max_usd
    if services.spending.reserve(execution_id, row.reserved_usd, cap_usd=cap_usd):
        return
    if settle_ended_pools(execution_id, lab=lab, services=services) and services.spending.reserve(
        execution_id, row.reserved_usd, cap_usd=cap_usd
    ):
        return
    exposed, spent = services.spending.read(execution_id)
    admission = admit_cost(worst_usd=row.reserved_usd, exposed_usd=exposed, spent_usd=spent, max_usd=cap_usd)
    if admission.decision is Decision.REFUSE:
        raise JobRefused(Outcome.COST_STOPPED, f"run {row.run.run_id} was not started: {admission.reason}")
    raise SlotUnavailable(f"run {row.run.run_id} waits: {admission.reason}")


def _release(row: AttemptRow, services: LabServices) -> None:
    services.spending.settle(row.run.execution_id, reserved_usd=row.reserved_usd, spent_usd=Decimal(0))


def _usd_by_type(run: Run, suite: Suite, facts: Mapping[str, Any], placed_on: str | None) -> dict[str, Decimal]:
    """Of every type that the job may run on."""
    types = (placed_on,) if placed_on else accepted_types(suite, run.cell.settings.instance)
    prices = {name: planned_price(facts, name) for name in types}
    unknown = [name for name, price in prices.items() if price is None]
    if unknown:
        raise JobRefused(
            Outcome.INTERNAL_ERROR, f"run {run.run_id}: its execution has no price of {', '.join(unknown)}"
        )
    return {name: price.usd_per_hour for name, price in prices.items() if price}
