"""Starts, resumes and follows trainings in a lab, and reads how they ended."""

import secrets
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal

from botocore.exceptions import ClientError

from traindyno.api.execution_state import RunningJob, State
from traindyno.api.lab_target import LabTarget
from traindyno.api.progress import QUIET_SECONDS, PlainDisplay
from traindyno.api.run_position import first_rank_logs, log_entries
from traindyno.api.staging import renew_staged
from traindyno.aws.client_errors import AwsError, is_service_fault
from traindyno.aws.executions import (
    NAME_CHARACTERS,
    ExecutionNameRefused,
    ExecutionUnknown,
    check_execution_name,
    name_taken,
)
from traindyno.cli.inputs.execution_receipt import load_paid
from traindyno.core.costs.prices import SECONDS_PER_HOUR
from traindyno.core.costs.projected_actual import attempt_span, job_seconds, job_usd
from traindyno.core.costs.quantity_text import usd_text
from traindyno.core.costs.receipt import write_receipt
from traindyno.core.documents.stored import JsonValue
from traindyno.core.errors import SuiteRefused, TraindynoError
from traindyno.core.jobs.journal_format import STEP_LOG
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.planning.refusals import refuse_arguments
from traindyno.core.s3_keys import checkpoints_prefix, suite_key, verdict_key
from traindyno.core.suite.cells import Cell
from traindyno.core.suite.choices import Purchase
from traindyno.core.suite.runs import run_id_of
from traindyno.core.suite.suite import Suite
from traindyno.core.suite.suite_file import read_stored_suite, suite_document
from traindyno.core.verdict.found_batch import found_batches
from traindyno.core.verdict.verdict import Finding, Verdict, parse_verdict
from traindyno.core.verdict.verdict_text import describe_goal
from traindyno.lab.attempt_owners import attempts_of
from traindyno.lab.continue_suite import CELL_LABELS
from traindyno.slices.training.forecast import Forecast, forecast, read_pace
from traindyno.slices.training.plan import (
    Projected,
    Training,
    parse_training,
    projected_of,
    steps_of,
    total,
    training_document,
    training_key,
    training_limits,
    training_suite,
)
from traindyno.store.results import load_record, load_results

COPIES_AT_ONCE = 8
LOG_TAIL_BYTES = 2**16
UNKNOWN_LENGTH = (
    "time left unknown: no field names how many steps the script does, its projection is for "
    "workload.examples"
)
UNDECIDED = (
    Finding.UNDECIDED,
    Finding.TOO_FEW_TRIALS,
    Finding.ONE_SEED,
    Finding.UNLIKE_WORK,
)


class TrainingRefused(TraindynoError):
    """There is nothing to train, or nothing to resume."""


def find_training(target: LabTarget, execution_id: str) -> Training | None:
    """The training of an execution; None if it is no training."""
    return target.results.find_as(training_key(execution_id), parse_training)


def plan_from_verdict(
    target: LabTarget,
    execution_id: str,
    *,
    cell: str | None,
    name: str | None,
    max_usd: Decimal | None,
    is_spot: bool,
    changes: Mapping[str, JsonValue],
    say: Callable[[str], None],
) -> tuple[Suite, Training]:
    """Plan a training of the cell that a verdict recommends.

    Raises TrainingRefused, SuiteRefused, or NothingRecorded.

    Args:
        target: Lab with the verdict.
        execution_id: Execution with the verdict.
        cell: Id or label of another cell.
        name: Name of the training.
        max_usd: The most that the training may cost.
        is_spot: Whether it runs on spot instances.
        changes: Hyperparameters of a script that differ from those of its trials.
        say: Gets a line if the verdict is undecided and no cell is named.
    """
    record = load_record(target.results, execution_id)
    verdict = target.results.find_as(verdict_key(execution_id), parse_verdict)
    if verdict is None:
        raise TrainingRefused(
            f"{execution_id} has no verdict: it is still running, or it was stopped"
        )
    choices = "; ".join(f"{cell.cell_id} ({cell.label})" for cell in record.cells)
    wanted = cell or verdict.recommended
    if wanted is None:
        raise TrainingRefused(
            f"{execution_id} recommends no cell; name one of its cells with --cell: {choices}"
        )
    chosen = next((cell for cell in record.cells if wanted in (cell.cell_id, cell.label)), None)
    if chosen is None:
        raise TrainingRefused(
            f"{execution_id} has no cell {wanted}; expected one of its cells: {choices}"
        )
    if cell is None and verdict.finding in UNDECIDED:
        say(undecided_text(verdict, execution_id, target.option))
    row = verdict.row(chosen.cell_id)
    searched = chosen.settings.batch_search
    if searched is not None:
        batch = found_batches(record.results).get(chosen.cell_id)
        if batch is None:
            raise TrainingRefused(f"the trials of cell {wanted} found no batch that fits")
        chosen = replace(chosen, settings=replace(chosen.settings, batch_size_per_device=batch))
        changes = {**({searched.argument: batch} if searched.argument else {}), **changes}
    suite = record.suite
    purchase = Purchase.SPOT if is_spot else record.suite.purchase
    execution = target.services.executions.find(execution_id)
    if execution is not None and execution.script_s3_uri is not None:
        suite = replace(suite, workload=replace(suite.workload, source=execution.script_s3_uri))
    own = [result for result in record.results if result.run.cell.cell_id == row.cell_id]
    projected = projected_of(row, own, is_same_purchase=purchase is suite.purchase)
    limits = training_limits(
        suite.limits, chosen.settings, row.usd_per_instance_hour, projected, max_usd
    )
    suite = training_suite(
        suite, chosen, limits=limits, purchase=purchase, projected=projected, changes=changes
    )
    refused = tuple(refuse_arguments(suite))
    if refused:
        raise SuiteRefused(refused)
    return suite, _planned(suite, chosen, name, verdict_of=execution_id, projected=projected)


def undecided_text(verdict: Verdict, execution_id: str, option: str) -> str:
    label = verdict.row(str(verdict.recommended)).label
    return (
        f"the verdict of {execution_id} is undecided: training {label}, the "
        f"{describe_goal(verdict.goal)} so far; --cell names another; to see why: traindyno report "
        f"{execution_id}{option}"
    )


def _planned(
    suite: Suite,
    cell: Cell,
    name: str | None,
    *,
    verdict_of: str | None = None,
    projected: Projected | None = None,
) -> Training:
    training_id = (
        name or f"{suite.name}-train-{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"
    )
    (only,) = suite.cells
    return Training(
        training_id=training_id,
        execution_id=training_id,
        cell=replace(only, label=cell.label),
        steps=steps_of(suite, only.settings),
        verdict_of=verdict_of,
        projected=projected,
    )


def plan_to_resume(
    target: LabTarget, name: str, *, max_usd: Decimal | None
) -> tuple[Suite, Training]:
    """Plan how a training goes on; nothing is changed.

    Without ``max_usd``, what is left of the earlier amount counts. Raises TrainingRefused, or
    StillRunning.
    """
    training = find_training(target, name)
    if training is None:
        raise TrainingRefused(
            f"{name} is no training; expected the name that `traindyno train` printed"
        )
    training, next_name = _latest(target, training)
    before = training.execution_id
    target.require_ended(before)
    result = find_result(target, training)
    if result is not None and result.outcome is Outcome.COMPLETED:
        raise TrainingRefused(
            f"{before} has trained the whole workload; see its model card with: traindyno watch "
            f"{before}{target.option}; serve its model with: traindyno deploy "
            f"{before}{target.option}"
        )
    suite, left = _planned_last(target, training)
    if max_usd is None and left <= 0:
        amount = usd_text(suite.limits.max_usd)
        raise TrainingRefused(
            f"{before}: nothing is left of its {amount}; give it more with --max-usd"
        )
    suite = replace(
        suite, limits=replace(suite.limits, max_usd=left if max_usd is None else max_usd)
    )
    prepared, paid = load_paid(before, target.services)
    lines = write_receipt([*prepared, *paid]).lines
    following = training.resumed(next_name, job_seconds(paid), job_usd(paid), lines)
    check_execution_name(following.execution_id)
    return suite, following


def _latest(target: LabTarget, training: Training) -> tuple[Training, str]:
    """The training as its latest execution that has begun, and the name of the next one.

    No other execution has that name, but a command that died before the start may have recorded it.
    """
    number = 1
    while True:
        number += 1
        suffix = f"-{number}"
        name = f"{training.training_id[: NAME_CHARACTERS - len(suffix)]}{suffix}"
        later = find_training(target, name)
        is_ours = later is not None and later.training_id == training.training_id
        if (is_ours or later is None) and not _has_begun(target, name):
            return training, name
        if later is not None and is_ours:
            training = later


def _has_begun(target: LabTarget, execution_id: str) -> bool:
    """Whether an execution has begun.

    Step Functions forgets an execution 90 days after its end, and its row is written after its
    start.
    """
    if target.services.executions.find(execution_id) is not None:
        return True
    try:
        target.executions.describe(execution_id)
    except ExecutionUnknown:
        return False
    return True


def _planned_last(target: LabTarget, training: Training) -> tuple[Suite, Decimal]:
    """The suite of the latest execution that was not refused, and what is left of its amount."""
    for execution_id in reversed(training.execution_ids):
        suite = target.results.find_as(suite_key(execution_id), read_stored_suite)
        if suite is not None:
            # A job whose cost is unknown keeps its worst case
            return suite, suite.limits.max_usd - target.services.spending.read(
                execution_id
            ).exposed_usd
    raise TrainingRefused(
        f"{training.training_id} was refused before its first job; train under another name"
    )


def start_training(target: LabTarget, suite: Suite, training: Training) -> None:
    """Start a training, which is recorded before anything of it is billed.

    The record of a command that died before its start is replaced. A refused start takes back its
    own record only: another command may have started the training. Raises ExecutionNameRefused.
    """
    name = training.execution_id
    bucket = target.results
    check_execution_name(name)
    if _has_begun(target, name):
        raise name_taken(name)
    renew_staged(suite_document(suite), bucket)
    key = training_key(name)
    own = replace(training, command=secrets.token_hex(8))
    before = bucket.find(key)
    bucket.write_json(key, training_document(own))
    _copy_checkpoints(target, own)
    try:
        labels = {training.cell.cell_id: training.cell.label}
        target.executions.start(name, {**suite_document(suite), CELL_LABELS: labels})
    except (ClientError, ExecutionNameRefused) as error:
        # After a fault of the service, the execution may exist
        is_refused = isinstance(error, ExecutionNameRefused) or not is_service_fault(error)
        if is_refused and bucket.find_as(key, parse_training) == own:
            if before is None:
                bucket.delete(key)
            else:
                bucket.write(key, before, "application/json")
        raise


def checkpoint_keys(target: LabTarget, training: Training) -> Mapping[str, bool]:
    """Keys that the execution before has left, each with whether it belongs to a checkpoint; the
    rest is its step log.
    """
    if not training.earlier:
        return {}
    prefix = checkpoints_prefix(training.earlier[-1], run_id_of(training.cell.cell_id, 1))
    log = f"{prefix}{STEP_LOG}/"
    return {key: not key.startswith(log) for key in target.results.list_keys(prefix)}


def _copy_checkpoints(target: LabTarget, training: Training) -> None:
    """Copy the checkpoints that are missing.

    A checkpoint that is there already was copied by a command that died, or is newer, because its
    execution runs.
    """
    run_id = run_id_of(training.cell.cell_id, 1)
    bucket = target.results
    new = checkpoints_prefix(training.execution_id, run_id)
    keys = {
        key: f"{new}{key.removeprefix(checkpoints_prefix(training.earlier[-1], run_id))}"
        for key in checkpoint_keys(target, training)
    }
    there = set(bucket.list_keys(new)) if keys else set()
    left = [(key, copy) for key, copy in keys.items() if copy not in there]
    with ThreadPoolExecutor(COPIES_AT_ONCE) as pool:
        list(pool.map(lambda copy: bucket.copy_large(*copy), left))


def find_result(target: LabTarget, training: Training) -> RunResult | None:
    return next(iter(load_results(target.results, training.execution_id)), None)


def read_forecast(target: LabTarget, training: Training, job: RunningJob) -> Forecast | None:
    """The forecast of a training; None unless its ``job`` trains, or where the number of steps is
    unknown.
    """
    execution = training.execution_id
    services = target.services
    rows = [
        row
        for run_row in services.runs.list_all(execution)
        for row in attempts_of(run_row, services.attempts)
    ]
    if training.steps is None or not rows or rows[-1].end is not None:
        return None
    row = rows[-1]
    run_id = run_id_of(training.cell.cell_id, 1)
    prefix = f"{checkpoints_prefix(execution, run_id)}step_log/{row.job_name}/"
    logs = first_rank_logs(target.results.list_keys(prefix))
    pace = (
        read_pace(log_entries(target.results.read_tail(logs[-1], LOG_TAIL_BYTES))) if logs else None
    )
    if pace is None:
        return None
    usd_per_second = float(row.usd_per_hour * row.instance_count / SECONDS_PER_HOUR)
    billed = [attempt.end.billable_seconds for attempt in rows if attempt.end is not None]
    running = (
        None if None in billed else sum(seconds or 0.0 for seconds in billed) + job.billed_seconds
    )
    spans = [attempt_span(attempt.end) for attempt in rows if attempt.end is not None]
    elapsed = job.seconds + sum(end - begin for begin, end in filter(None, spans))
    return forecast(
        pace,
        training.projected,
        steps=training.steps,
        elapsed_seconds=total(training.earlier_seconds, elapsed),
        spent_usd=total(
            training.earlier_usd, None if running is None else usd_per_second * running
        ),
        usd_per_second=usd_per_second,
    )


class TrainingDisplay(PlainDisplay):
    """Display of a training that says every half a minute how it goes against its projection, or
    why that is unknown.

    It also says when the training leaves its interval.
    """

    def __init__(self, target: LabTarget, training: Training, say: Callable[[str], None]) -> None:
        super().__init__(say)
        self._target = target
        self._training = training
        self._was_inside = True

    def line(self, state: State) -> str:
        known = super().line(state)
        return known if self._training.steps is not None else f"{known}; {UNKNOWN_LENGTH}"

    def show(self, state: State) -> None:
        expected = None
        if state.execution.is_running and state.jobs:
            with suppress(*AwsError):  # the next reading may find it
                expected = read_forecast(self._target, self._training, state.jobs[0])
        if expected is None:
            super().show(state)
        elif (
            expected.is_inside is not self._was_inside
            or time.monotonic() - self._told_at >= QUIET_SECONDS
        ):
            self._was_inside = expected.is_inside
            self.tell(expected.line())
