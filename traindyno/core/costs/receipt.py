"""Receipt of an execution: every attempt with its seconds, price and phases, adding up to the total
to the cent.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from traindyno.core.costs.prices import cost_usd
from traindyno.core.costs.projection import measured_attempt
from traindyno.core.costs.quantity_text import apportion, place_text, to_cents
from traindyno.core.jobs.attempt import UNBILLED_PHASES, Attempt
from traindyno.core.measurement.run_phases import (
    JOB_END,
    JOB_START,
    TRAINING,
    divide,
    phase_parts,
    script_phases,
)
from traindyno.core.measurement.run_result import PreparationResult, RunResult

RUNNING = "running"
# The service and the script use different clocks, so the logged phases can exceed the job's time
# slightly.
CLOCK_SECONDS = 2.0
#: Phase of a shared job: the time before its first run, after its last one, and between them.
BETWEEN_RUNS = "between_runs"


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseCost:
    """Cost of one phase.

    ``usd`` is this phase's share of the line, in cents; None where the line's cost is.
    """

    name: str
    seconds: float
    usd: Decimal | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceiptLine:
    """One attempt. Seconds of None, and so ``usd``, are unknown. ``exact_usd`` is before rounding.

    If several runs shared the job, the line is one run's part; ``place`` of None: it had a job of
    its own. ``outcome`` is the error's name or ``running`` if there is none.
    """

    run_id: str
    label: str
    attempt: int
    job_name: str
    outcome: str
    instance: str
    instance_count: int
    billable_seconds: Decimal | None
    usd_per_instance_hour: Decimal | None
    exact_usd: Decimal | None
    usd: Decimal | None
    phases: tuple[PhaseCost, ...]
    #: The run's place among the ``runs`` that share the job's bill; 0 if it is billed nothing.
    place: int | None = None
    runs: int = 1

    @property
    def place_text(self) -> str | None:
        return place_text(self.place, self.runs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """Receipt of an execution.

    ``known_usd`` sums the lines whose cost is known; ``total_usd`` is that sum where all are, else
    None.
    """

    lines: tuple[ReceiptLine, ...]
    known_usd: Decimal
    total_usd: Decimal | None
    phases: tuple[PhaseCost, ...]

    @property
    def is_small(self) -> bool:
        """Whether the total is below $1: cents are too coarse to be divided among its jobs and
        phases.
        """
        return self.known_usd < 1

    def shown_usd(self, line: ReceiptLine) -> Decimal | None:
        return line.exact_usd if self.is_small else line.usd

    @property
    def job_count(self) -> int:
        shared = {line.job_name for line in self.lines if line.place is not None}
        return len(shared) + sum(line.place is None for line in self.lines)


def write_receipt(
    results: Sequence[RunResult | PreparationResult],
    *,
    running_jobs: Collection[str] = (),
) -> Receipt:
    drafts = [
        _line(result, attempt, is_running=attempt.job_name in running_jobs)
        for result in results
        for attempt in result.attempts
    ]
    cents = _cents_by_line(drafts)
    known = sum(cents.values(), Decimal("0.00"))
    lines = tuple(
        _in_cents(draft, cents[index]) if index in cents else draft
        for index, draft in enumerate(drafts)
    )
    return Receipt(
        lines=lines,
        known_usd=known,
        total_usd=known if len(cents) == len(lines) else None,
        phases=_sum_phases(lines),
    )


def _cents_by_line(drafts: Sequence[ReceiptLine]) -> dict[int, Decimal]:
    """Cents of each line whose cost is known, by index: first each job's, then its runs'."""
    jobs: dict[str | int, dict[int, Decimal]] = {}
    for index, draft in enumerate(drafts):
        if draft.exact_usd is not None:
            jobs.setdefault(index if draft.place is None else draft.job_name, {})[index] = (
                draft.exact_usd
            )
    exact = [sum(lines.values(), Decimal(0)) for lines in jobs.values()]
    cents = apportion(exact, to_cents(sum(exact, Decimal(0))))
    return {
        index: usd
        for lines, total in zip(jobs.values(), cents, strict=True)
        for index, usd in zip(lines, apportion(list(lines.values()), total), strict=True)
    }


def _line(
    result: RunResult | PreparationResult, attempt: Attempt, *, is_running: bool
) -> ReceiptLine:
    logged: Attempt | None = result.attempts[-1]
    if isinstance(result, PreparationResult):
        job = result.preparation
        run_id = job.preparation_id
        label = job.label
        instance = job.instance
        count = 1
    else:
        cell = result.run.cell
        logged = measured_attempt(result)
        run_id = result.run.run_id
        label = cell.label
        instance = cell.settings.instance
        count = cell.settings.instance_count
    price = result.price.usd_per_instance_hour
    billed = None if attempt.billable_seconds is None else Decimal(str(attempt.billable_seconds))
    outcome = attempt.outcome.value if attempt.outcome else attempt.error
    # the phases of the attempt whose step log was read
    seconds = _phase_seconds(attempt, result.phases_seconds if attempt is logged else {})
    return ReceiptLine(
        run_id=run_id,
        label=label,
        attempt=attempt.number,
        job_name=attempt.job_name,
        outcome=RUNNING if is_running else outcome or "unknown",
        instance=instance,
        instance_count=count,
        billable_seconds=billed,
        usd_per_instance_hour=price,
        exact_usd=None if billed is None or price is None else cost_usd(billed, count, price),
        usd=None,
        phases=tuple(
            PhaseCost(name=name, seconds=value, usd=None) for name, value in seconds.items()
        ),
        place=attempt.share.place if attempt.share else None,
        runs=attempt.share.runs if attempt.share else 1,
    )


def _phase_seconds(attempt: Attempt, run_phases: Mapping[str, float]) -> dict[str, float]:
    """The service's phases; its training is split into what the step log of the measured attempt
    says was done.
    """
    seconds: dict[str, float] = {}
    for name, value in phase_parts(attempt).items():
        script = script_phases(run_phases)
        logged = sum(script.values())
        if name != TRAINING or not logged or logged > value + CLOCK_SECONDS:
            seconds[name] = value
        else:
            fitted = {phase: spent * min(1.0, value / logged) for phase, spent in script.items()}
            parts = _parts_of_job(attempt, run_phases)
            seconds |= {**fitted, **divide(max(0.0, value - logged), parts)}
    return seconds


def _parts_of_job(attempt: Attempt, run_phases: Mapping[str, float]) -> dict[str, float]:
    """The run's parts of the time that a shared job spent for no single run."""
    share = attempt.share
    if share is None:
        return {name: run_phases[name] for name in (JOB_START, JOB_END) if name in run_phases}
    if not share.place:
        return {}
    beside = phase_parts(attempt)
    start = share.start_seconds / share.runs
    end = share.end_seconds / share.runs
    return {
        JOB_START: start - beside.get("downloading", 0.0),
        JOB_END: end - beside.get("uploading", 0.0) - beside.get("stopping", 0.0),
        BETWEEN_RUNS: (attempt.training_seconds or 0.0) - share.own_seconds - start - end,
    }


def _by_phase(line: ReceiptLine, usd: Decimal) -> dict[str, Decimal]:
    """The line's money by the phases that are billed, in proportion to their seconds."""
    seconds = {
        phase.name: Decimal(str(phase.seconds))
        for phase in line.phases
        if phase.name not in UNBILLED_PHASES and phase.seconds > 0
    }
    total = sum(seconds.values())
    return {name: usd * phase_seconds / total for name, phase_seconds in seconds.items()}


def _in_cents(line: ReceiptLine, usd: Decimal) -> ReceiptLine:
    exact = _by_phase(line, usd)
    shares = dict(zip(exact, apportion(list(exact.values()), usd), strict=True))
    return replace(
        line,
        usd=usd,
        phases=tuple(
            replace(phase, usd=shares.get(phase.name, Decimal(0))) for phase in line.phases
        ),
    )


def exact_phase_usd(lines: Sequence[ReceiptLine]) -> dict[str, Decimal]:
    """Unrounded cost of each phase, for receipts so small that most phases cost less than a
    cent.
    """
    usd: dict[str, Decimal] = {}
    for line in lines:
        if line.exact_usd is not None:
            for name, share in _by_phase(line, line.exact_usd).items():
                usd[name] = usd.get(name, Decimal(0)) + share
    return usd


def _sum_phases(lines: Sequence[ReceiptLine]) -> tuple[PhaseCost, ...]:
    seconds: dict[str, float] = {}
    usd: dict[str, Decimal] = {}
    for phase in (phase for line in lines for phase in line.phases):
        seconds[phase.name] = seconds.get(phase.name, 0.0) + phase.seconds
        usd[phase.name] = usd.get(phase.name, Decimal(0)) + (phase.usd or Decimal(0))
    return tuple(
        PhaseCost(name=name, seconds=value, usd=usd[name]) for name, value in seconds.items()
    )
