"""The result of one run, or of a preparation: its outcome, its measurements, its cost, and their
evidence.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from traindyno.core.documents.stored import from_document, to_document
from traindyno.core.documents.versions import Format
from traindyno.core.instances.instance_types import find_instance_type
from traindyno.core.jobs.attempt import Attempt
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.jobs.run_end import BatchFinding, OutpacedBound
from traindyno.core.measurement.measured_run import (
    MeasuredRun,
    RunEnvironment,
    measure_run,
    read_environment,
)
from traindyno.core.measurement.run_phases import SessionSteps, divide_steps, measure_phases
from traindyno.core.measurement.throughput import Throughput
from traindyno.core.run.settings import Settings
from traindyno.core.run.tokens import DataPreparation
from traindyno.core.run.workload import FullRun
from traindyno.core.step_log.content import Session, StepLog
from traindyno.core.step_log.line import SAMPLES, SEED, TOKENS, WORK_UNIT
from traindyno.core.step_log.step_table import tabulate_steps
from traindyno.core.step_log.unknown_work import describe_unknown_work
from traindyno.core.suite.choices import Precision, Quality, Task
from traindyno.core.suite.suite import Run, Suite

MOST_AFTER_TRACEBACK = 3
LONGEST_ERROR = 300
_TRACEBACK = "Traceback (most recent call last):"
_ERROR = re.compile(r"[A-Za-z_][\w.]*(?:: .*)?$")
RUN_RESULT = Format(name="run result", version=1)
PREPARATION_RESULT = Format(name="preparation result", version=1)


def describe_doubt(step_log: StepLog | None, log_tail: Sequence[str]) -> str | None:
    """What makes a run doubtful; None where nothing does.

    Of the sessions with steps the last one counts: an earlier one may have ended with its job or
    its instance. ``log_tail`` has the last lines of the job's log.
    """
    session = (
        next((logged for logged in reversed(step_log.sessions) if logged.common_steps), None)
        if step_log
        else None
    )
    doubts = [
        doubt for doubt in (_ending_traceback(log_tail), _cut_off(session)) if doubt is not None
    ]
    return "; ".join(doubts) or None


def _cut_off(session: Session | None) -> str | None:
    cut_off = [process for process in session.processes if not process.is_ended] if session else []
    if not cut_off:
        return None
    steps = len(cut_off[0].steps)
    return (
        f"the process of rank {cut_off[0].rank} exited with status 0 without closing its step log, "
        f"as os._exit does: what it did after step {cut_off[0].steps[-1].step if steps else 0} is "
        "unknown"
    )


def _ending_traceback(log_tail: Sequence[str]) -> str | None:
    """The script caught an error, printed it, and ended as if all were well."""
    lines = [line.rstrip() for line in log_tail if line.strip()]
    begins = [place for place, line in enumerate(lines) if line.strip().endswith(_TRACEBACK)]
    if not begins:
        return None
    indent = len(lines[begins[-1]]) - len(_TRACEBACK)
    block = [line[indent:] for line in lines[begins[-1] + 1 :]]
    errors = [
        place for place, line in enumerate(block) if not line.startswith(" ") and _ERROR.match(line)
    ]
    if not errors or len(block) - errors[0] - 1 > MOST_AFTER_TRACEBACK:
        return None
    return (
        "its log ends in a traceback, although it exited with status 0: "
        f"{block[errors[0]][:LONGEST_ERROR]}"
    )


def billed_seconds(attempts: Sequence[Attempt]) -> float | None:
    """Billed seconds of all attempts together; None if any of them is unknown."""
    known = [
        attempt.billable_seconds for attempt in attempts if attempt.billable_seconds is not None
    ]
    return sum(known) if known and len(known) == len(attempts) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class PaidPrice:
    """The price of an instance hour, with its date, region and source.

    ``usd_per_instance_hour`` of None is unknown.
    """

    usd_per_instance_hour: Decimal | None
    region: str | None = None
    date: str | None = None
    source: str | None = None
    purchase: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """Result of a run.

    ``examples`` is the whole workload's number, from which costs are projected. ``message`` says
    why the run failed, or what makes a completed one doubtful. ``is_simulated`` marks results of a
    replayed or modelled trace; it is shown wherever the numbers are shown. ``seed`` is the trial's,
    None unless the run shows that it trained with it.
    """

    run: Run
    examples: int
    outcome: Outcome
    message: str | None
    log_tail: tuple[str, ...]
    attempts: tuple[Attempt, ...]
    phases_seconds: Mapping[str, float]
    measured: MeasuredRun | None
    environment: RunEnvironment | None
    step_log_problems: tuple[str, ...]
    billable_seconds: float | None
    price: PaidPrice
    is_simulated: bool
    #: The schedule of the full run, to which the trial is projected.
    full_run: FullRun | None = None
    #: The suite's setting, by which an interrupted run resumes if its log shows no checkpoints.
    checkpoint_every_steps: int | None = None
    seed: int | None = None

    @property
    def bound(self) -> OutpacedBound | None:
        """How slow it is at least; None unless it was outpaced."""
        return (
            self.attempts[-1].bound if self.attempts and self.outcome is Outcome.OUTPACED else None
        )

    @property
    def batch_finding(self) -> BatchFinding | None:
        """Result of the probes; None unless the run searched its batch."""
        return self.attempts[-1].batch if self.attempts else None

    @property
    def found_batch(self) -> int | None:
        """The batch per device of a cell that searches it: found by this run or by an earlier
        trial.
        """
        return self.batch_finding.batch if self.batch_finding else self.run.found_batch

    @property
    def facts(self) -> Mapping[str, Any]:
        """What it reported of its environment; empty if its log has none."""
        return self.environment.facts if self.environment else {}

    def last_value(self, quality: Quality) -> float | None:
        """At the last evaluation; None if it was not measured."""
        evaluations = self.measured.evaluations if self.measured else ()
        return evaluations[-1].metrics.get(quality.value) if evaluations else None

    @property
    def throughput(self) -> Throughput | None:
        return self.measured.throughput if self.measured else None

    @property
    def samples_per_second(self) -> float | None:
        return self.throughput.samples_per_second if self.throughput else None

    @property
    def work_unit(self) -> str:
        """The unit of this run's work: ``tokens`` without padding, ``rows``, or ``samples`` as a
        script counts them.
        """
        return str(self.facts.get(WORK_UNIT, SAMPLES))

    @property
    def work_per_example(self) -> float | None:
        """How many of ``work_unit`` an example holds: 1, or the mean tokens of the examples that
        were trained on.
        """
        if self.work_unit != TOKENS:
            return 1.0
        rate = self.throughput
        return rate.tokens / rate.samples if rate and rate.tokens is not None else None


def build_run_result(
    run: Run,
    *,
    suite: Suite,
    outcome: Outcome,
    attempts: Sequence[Attempt],
    step_log: StepLog | None,
    price: PaidPrice,
    message: str | None = None,
    log_tail: Sequence[str] = (),
    is_simulated: bool = False,
) -> RunResult:
    """Result of a run that has ended.

    Args:
        attempts: Its attempts.
        step_log: Step log; None if no process wrote one.
        price: Price that was paid.
        message: Reason of a failure.
    """
    session = step_log.measured if step_log else None
    table = tabulate_steps(session) if session else None
    measured = None
    others = list[SessionSteps]()
    if step_log is not None and session is not None and table is not None:
        measured = measure_run(
            step_log,
            session,
            table,
            warmup_steps=suite.measurement.warmup,
            peak_flops_per_device=_peak_flops(run.cell.settings),
        )
        others = _other_sessions(step_log, session)
    warmup_steps = measured.steady_state.warmup_steps if measured else 0
    contradicted = _contradiction(outcome, step_log)
    phases = measure_phases(attempts, session, table, warmup_steps=warmup_steps, others=others)
    environment = read_environment(step_log) if step_log else None
    unknown = describe_unknown_work(session) if session else None
    doubt = describe_doubt(step_log, log_tail) if outcome is Outcome.COMPLETED else None
    return RunResult(
        run=run,
        examples=suite.workload.examples,
        outcome=contradicted[0] if contradicted else outcome,
        message=contradicted[1] if contradicted else message or unknown or doubt,
        log_tail=tuple(log_tail) if doubt or outcome is not Outcome.COMPLETED else (),
        attempts=tuple(attempts),
        phases_seconds=phases,
        measured=measured,
        environment=environment,
        step_log_problems=step_log.problems if step_log else ("no step log was found",),
        billable_seconds=billed_seconds(attempts),
        price=price,
        is_simulated=is_simulated,
        full_run=suite.workload.full_run,
        checkpoint_every_steps=suite.measurement.checkpoint_every_steps,
        seed=run.seed if _has_trained_with_seed(run, suite, environment) else None,
    )


def _other_sessions(step_log: StepLog, session: Session) -> list[SessionSteps]:
    """The other sessions of the job of this one."""
    return [
        steps
        for steps in divide_steps(step_log.sessions)
        if steps.session.job_name == session.job_name and steps.session is not session
    ]


def _peak_flops(settings: Settings) -> float | None:
    """The device's peak, which is known for the dense 16-bit formats only."""
    instance_type = find_instance_type(settings.instance)
    if instance_type is None or settings.precision is Precision.FP32:
        return None
    return instance_type.device.half_flops


def _has_trained_with_seed(run: Run, suite: Suite, environment: RunEnvironment | None) -> bool:
    """Whether the program trained with the run's seed.

    A built-in task does. A script does if it gets the seed or says that it took it.
    """
    if suite.workload.task is not Task.SCRIPT or suite.measurement.seed_argument is not None:
        return True
    return environment is not None and environment.facts.get(SEED) == run.seed


def run_result_document(result: RunResult) -> dict[str, Any]:
    """Document of a result, as JSON can hold it: money is text, a number that is not finite is
    null.
    """
    return RUN_RESULT.mark(to_document(result))


def parse_run_result(document: Mapping[str, Any]) -> RunResult:
    """Read a result. Raises VersionUnknown."""
    return from_document(RUN_RESULT.read(document), RunResult)


def _contradiction(outcome: Outcome, step_log: StepLog | None) -> tuple[Outcome, str] | None:
    """Why a completed job did not do its work: its loss diverged, or not all of its processes
    logged.
    """
    if step_log is None or outcome is not Outcome.COMPLETED:
        return None
    diverged = next(
        (error for error in step_log.errors if error.outcome == Outcome.LOSS_DIVERGED), None
    )
    if diverged is not None:
        return Outcome.LOSS_DIVERGED, diverged.message
    session = step_log.measured
    if session is not None and session.missing_ranks:
        return Outcome.USER_CODE_ERROR, session.describe_missing_ranks()
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparationResult:
    """Result of a preparation.

    ``phases_seconds`` has the seconds of each phase by its name, of all attempts.
    """

    preparation: DataPreparation
    outcome: Outcome
    message: str | None
    log_tail: tuple[str, ...]
    attempts: tuple[Attempt, ...]
    phases_seconds: Mapping[str, float]
    price: PaidPrice
    is_simulated: bool = False

    @property
    def billable_seconds(self) -> float | None:
        return billed_seconds(self.attempts)


def preparation_result_document(result: PreparationResult) -> dict[str, Any]:
    return PREPARATION_RESULT.mark(to_document(result))


def parse_preparation_result(document: Mapping[str, Any]) -> PreparationResult:
    """Raises VersionUnknown."""
    return from_document(PREPARATION_RESULT.read(document), PreparationResult)
