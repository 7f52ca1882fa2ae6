"""A training of a suite's whole workload: its suite, what it was projected to take, and its
record.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from decimal import ROUND_CEILING, Decimal
from math import ceil
from typing import Any

from traindyno.core.costs.prices import SECONDS_PER_HOUR
from traindyno.core.costs.receipt import ReceiptLine
from traindyno.core.documents.stored import JsonValue, from_document, to_document
from traindyno.core.documents.versions import Format
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.planning.job_terms import JobTerms
from traindyno.core.run.processes import planned_batch_size
from traindyno.core.run.settings import HYPERPARAMETER_PREFIX, Settings, fixed_for_scripts
from traindyno.core.s3_keys import SUITES_PREFIX
from traindyno.core.suite.cells import Cell
from traindyno.core.suite.choices import Jobs, Purchase, Search, Task
from traindyno.core.suite.suite import MOST_HOURS, Limits, Measurement, Suite
from traindyno.core.verdict.cell_row import CellRow
from traindyno.figures.estimates import Interval

TRAINING = Format(name="training", version=1)
MINUTES_BETWEEN_CHECKPOINTS = 10
LEAST_CHECKPOINTS = 10
# SageMaker's default quota of the longest job; a training goes on in the next one.
LONGEST_JOB_SECONDS = 5 * 24 * 3600
LEAST_JOB_SECONDS = 60
# A job may take this much longer than the projection, and so much more for what a short training
# hardly notices.
ROOM = 1.25
MORE_SECONDS = 600
CENT = Decimal("0.01")
# The limit of a script, which decides itself; a built-in loop ends with the examples.
MOST_STEPS = 10**9


@dataclass(frozen=True, slots=True, kw_only=True)
class Projected:
    """What the verdict said of the whole workload.

    Intervals are of one future run; None is unknown.
    """

    seconds: float | None = None
    seconds_interval: Interval | None = None
    usd: float | None = None
    usd_interval: Interval | None = None
    step_seconds: float | None = None
    peak_memory_bytes: int | None = None
    model_flops_utilization: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """The record of a training.

    ``training_id`` is the name of its first execution; after a stop, another ``execution_id``
    continues it. ``steps`` is None if a script decides itself, or the number of devices is unknown.
    """

    training_id: str
    execution_id: str
    cell: Cell
    steps: int | None
    verdict_of: str | None = None
    projected: Projected | None = None
    #: The executions that it continues, the first one first, and what their jobs took; None is
    #: unknown.
    earlier: tuple[str, ...] = ()
    earlier_seconds: float | None = 0.0
    earlier_usd: float | None = 0.0
    earlier_lines: tuple[ReceiptLine, ...] = ()
    #: The command that recorded it, which has a start of its own.
    command: str = ""

    @property
    def execution_ids(self) -> tuple[str, ...]:
        return (*self.earlier, self.execution_id)

    def resumed(
        self,
        name: str,
        seconds: float | None,
        usd: float | None,
        lines: Iterable[ReceiptLine],
    ) -> "Training":
        """The training as the execution ``name`` continues it.

        ``seconds``, ``usd`` and ``lines`` are those of the jobs before.
        """
        return replace(
            self,
            execution_id=name,
            earlier=self.execution_ids,
            earlier_seconds=total(self.earlier_seconds, seconds),
            earlier_usd=total(self.earlier_usd, usd),
            earlier_lines=(*self.earlier_lines, *lines),
        )


def total(first: float | None, second: float | None) -> float | None:
    return None if first is None or second is None else first + second


def training_key(execution_id: str) -> str:
    return f"{SUITES_PREFIX}{execution_id}/training.json"


def training_document(training: Training) -> dict[str, Any]:
    return TRAINING.mark(to_document(training))


def parse_training(document: Mapping[str, Any]) -> Training:
    return from_document(TRAINING.read(document), Training)


def projected_of(
    row: CellRow, results: Iterable[RunResult], *, is_same_purchase: bool
) -> Projected:
    """The verdict's projection of the whole workload.

    Without ``is_same_purchase`` the cost is left out, since the training pays another one.
    """
    prediction = row.prediction
    steps = row.steps_per_second
    usd_interval = prediction.usd if prediction and is_same_purchase else None
    if usd_interval and row.usd_per_hour is not None:
        # Whole seconds are billed, of the trials and of the training: each end may be off by one.
        usd_of_second = float(row.usd_per_hour / SECONDS_PER_HOUR)
        low = max(0.0, usd_interval.low - usd_of_second)
        high = usd_interval.high + usd_of_second
        usd_interval = replace(usd_interval, low=low, high=high)
    peaks = [result.measured.peak_memory_bytes or 0 for result in results if result.measured]
    return Projected(
        seconds=row.seconds.mean if row.seconds else None,
        seconds_interval=prediction.seconds if prediction else None,
        usd=row.usd.mean if row.usd and is_same_purchase else None,
        usd_interval=usd_interval,
        step_seconds=1 / steps.mean if steps else None,
        peak_memory_bytes=max(peaks, default=0) or None,
        model_flops_utilization=row.time.model_flops_utilization,
    )


def steps_of(suite: Suite, settings: Settings) -> int | None:
    batch = planned_batch_size(settings)
    return (
        None
        if batch is None or suite.workload.task is Task.SCRIPT
        else ceil(suite.workload.examples / batch)
    )


def training_suite(
    suite: Suite,
    cell: Cell,
    *,
    limits: Limits,
    purchase: Purchase,
    projected: Projected | None = None,
    changes: Mapping[str, JsonValue] | None = None,
) -> Suite:
    """A suite of one cell, which runs once to the end of the workload.

    Args:
        suite: Suite whose workload is trained.
        cell: Cell to train.
        limits: Limits of the training's jobs.
        purchase: How the jobs are paid.
        projected: What the verdict projected, or None.
        changes: Hyperparameters of a script that differ from the trials', such as its number of
            steps.
    """
    return replace(
        suite,
        workload=replace(suite.workload, full_run=None),
        training=_training_section(suite, cell, changes or {}),
        matrix={},
        baseline={},
        include=(),
        exclude=(),
        search=Search.GRID,
        purchase=purchase,
        limits=replace(limits, chain_jobs=True),
        measurement=_measurement_of_training(suite, cell, projected),
    )


def _training_section(suite: Suite, cell: Cell, changes: Mapping[str, JsonValue]) -> dict[str, Any]:
    """The cell's settings that differ from the defaults, and its hyperparameters.

    Trials of a script may have searched a batch, or be of a version that took what no script sees.
    """
    usual = Settings(instance=cell.settings.instance)
    is_script = suite.workload.task is Task.SCRIPT
    settings = {field.name: getattr(cell.settings, field.name) for field in fields(Settings)}
    section = {
        name: value
        for name, value in settings.items()
        if (name == "instance" or value != getattr(usual, name))
        and (not is_script or name in fixed_for_scripts())
    }
    for name, value in {**cell.hyperparameters, **changes}.items():
        section[f"{HYPERPARAMETER_PREFIX}{name}"] = value
    return section


def _measurement_of_training(suite: Suite, cell: Cell, projected: Projected | None) -> Measurement:
    """One trial to the last step. It saves the model and checkpoints, but for a script."""
    is_script = suite.workload.task is Task.SCRIPT
    full_run = suite.workload.full_run
    steps = steps_of(suite, cell.settings)
    evaluate_every = full_run.evaluate_every_steps if full_run else None
    if evaluate_every is None:
        evaluate_every = suite.measurement.evaluate_every_steps
    checkpoint_every = None if is_script else _checkpoint_every(suite, steps, projected)
    return replace(
        suite.measurement,
        trials=1,
        warmup=None,
        stop_when=None,
        confirm=None,
        max_steps=steps or MOST_STEPS,
        least_seconds=None,
        evaluate=not is_script,
        evaluate_every_steps=evaluate_every,
        save_model=not is_script,
        save_best=not is_script and evaluate_every is not None,
        checkpoint_every_steps=checkpoint_every,
        jobs=Jobs.SEPARATE,
    )


def _checkpoint_every(suite: Suite, steps: int | None, projected: Projected | None) -> int:
    """Steps between checkpoints: as the suite says of the whole training, else every ten minutes,
    and ten times at least.
    """
    minutes = suite.workload.full_run.checkpoint_every_minutes if suite.workload.full_run else None
    step_seconds = projected.step_seconds if projected else None
    if minutes is None and suite.measurement.checkpoint_every_steps is not None:
        return suite.measurement.checkpoint_every_steps
    most = max(1, (steps or 1000) // LEAST_CHECKPOINTS)
    if step_seconds is None:
        return most
    return max(1, min(most, round((minutes or MINUTES_BETWEEN_CHECKPOINTS) * 60 / step_seconds)))


def training_limits(
    limits: Limits,
    settings: Settings,
    usd_per_hour: Decimal | None,
    projected: Projected,
    max_usd: Decimal | None,
) -> Limits:
    """Limits of a training: jobs as long as the projection, or as the quota allows, and an amount
    that pays for one job more than it needs.

    Args:
        limits: The suite's limits, which count without a projection.
        settings: Settings of the trained cell.
        usd_per_hour: Price of one instance; None is unknown.
        projected: What the verdict projected.
        max_usd: The most that the training may cost. A job is then short enough that another one
            can be paid after it.
    """
    if projected.seconds is None:
        return limits if max_usd is None else replace(limits, max_usd=max_usd)
    count = settings.instance_count
    longest = (
        projected.seconds_interval.high if projected.seconds_interval else 2 * projected.seconds
    )
    seconds = min(LONGEST_JOB_SECONDS, ceil(longest * ROOM) + MORE_SECONDS)
    terms = JobTerms(instance_type=settings.instance, instance_count=count, max_job_seconds=seconds)
    if max_usd is not None and usd_per_hour:
        paid = int(max_usd / 2 / usd_per_hour / count * SECONDS_PER_HOUR) - (
            terms.longest_seconds - seconds
        )
        terms = replace(terms, max_job_seconds=max(LEAST_JOB_SECONDS, min(seconds, paid)))
    jobs = ceil(longest * ROOM / terms.max_job_seconds) + 1
    cap = max_usd
    if cap is None:
        if usd_per_hour is None:
            cap = limits.max_usd
        else:
            cap = (jobs * terms.worst_case_usd(usd_per_hour)).quantize(CENT, ROUND_CEILING)
    hours = min(
        MOST_HOURS,
        ceil(jobs * (terms.longest_seconds + limits.max_pending_seconds) / SECONDS_PER_HOUR),
    )
    return replace(
        limits,
        max_usd=cap,
        max_hours=Decimal(hours),
        max_job_seconds=terms.max_job_seconds,
        max_run_seconds=None,
    )
