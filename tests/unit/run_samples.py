"""Suites, runs and results for tests of what judges and reports them."""

from collections.abc import Sequence
from dataclasses import fields, replace
from decimal import Decimal
from typing import Any, TypeVar

from tests.unit.step_log_samples import START, file_name, log_lines
from traindyno.core.jobs.attempt import Attempt
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.jobs.run_summary import RunSummary, RunTime
from traindyno.core.measurement.run_result import PaidPrice, RunResult, build_run_result
from traindyno.core.run.settings import Settings
from traindyno.core.run.workload import Workload
from traindyno.core.step_log.reader import StepLog, read_step_log
from traindyno.core.suite.cells import Cell
from traindyno.core.suite.choices import GoalKind, Search, Task
from traindyno.core.suite.goal import Goal
from traindyno.core.suite.suite import (
    Limits,
    Measurement,
    Run,
    Suite,
)

Value = TypeVar("Value")
PRICE = PaidPrice(
    usd_per_instance_hour=Decimal("36"),
    region="us-west-2",
    date="2026-11-20",
    source="Price List API",
)


def make_suite(*, goal: Goal | None = None, examples: int = 100_000, **changes: Any) -> Suite:
    given: dict[str, Any] = {
        "name": "sample",
        "goal": goal or Goal(kind=GoalKind.CHEAPEST),
        "workload": Workload(task=Task.CAUSAL_LM, examples=examples),
        "training": {},
        "baseline": {},
        "matrix": {"strategy": ("ddp",)},
        "measurement": Measurement(),
        "search": Search.GRID,
        "limits": Limits(max_usd=Decimal(100), max_hours=Decimal(1), max_job_seconds=600),
        **changes,
    }
    return Suite(**given)


def make_cell(cell_id: str = "0000000a", label: str = "ddp", **settings: Any) -> Cell:
    return Cell(
        cell_id=cell_id,
        label=label,
        settings=Settings(**{"instance": "ml.p4d.24xlarge", **settings}),
    )


def make_run(cell: Cell, trial: int = 1) -> Run:
    seed = cell.settings.seed + trial - 1
    return Run(
        run_id=f"{cell.cell_id}-t{trial}",
        execution_id="execution-1",
        trial=trial,
        cell=cell,
        seed=seed,
    )


def make_attempt(**changes: Any) -> Attempt:
    given: dict[str, Any] = {
        "number": 1,
        "job_name": "traindyno-sample-a1",
        "outcome": Outcome.COMPLETED,
        "submitted_at": START - 130,
        "started_at": START - 100,
        "ended_at": START + 100,
        "billable_seconds": 200.0,
        "phase_seconds": {
            "starting": 60.0,
            "downloading": 20.0,
            "training": 100.0,
            "uploading": 20.0,
        },
        **changes,
    }
    return Attempt(**given)


def step_log_of(step_seconds: Sequence[float], **changes: Any) -> StepLog:
    return read_step_log({file_name(): log_lines(step_seconds=step_seconds, **changes)})


def result_from(
    step_log: StepLog | None = None, *, run: Run | None = None, **changes: Any
) -> RunResult:
    """A completed run of one attempt; ``changes`` are arguments of build_run_result."""
    given: dict[str, Any] = {
        "suite": make_suite(),
        "outcome": Outcome.COMPLETED,
        "attempts": [make_attempt()],
        "price": PRICE,
        **changes,
    }
    return build_run_result(run or make_run(make_cell()), step_log=step_log, **given)


def completed_result(
    cell: Cell,
    trial: int,
    *,
    step_seconds: float = 1.0,
    suite: Suite | None = None,
    price: PaidPrice = PRICE,
    samples: int = 8,
    **changes: Any,
) -> RunResult:
    """A run of 60 even steps after a first step of 10 s: 60 s to start, and billed 100 s more than
    its steps took.
    """
    seconds = [10.0] + [step_seconds] * 60
    phases = {
        "starting": 60.0,
        "downloading": 20.0,
        "training": 60.0 + sum(seconds),
        "uploading": 20.0,
    }
    return result_from(
        step_log_of(seconds, samples=samples, tokens=samples * 10, **changes),
        run=make_run(cell, trial),
        suite=suite or make_suite(),
        attempts=[make_attempt(billable_seconds=100 + sum(seconds), phase_seconds=phases)],
        price=price,
    )


def completed_results(
    cells: Sequence[Cell], *step_seconds: Sequence[float | None], **changes: Any
) -> list[RunResult]:
    """Of each cell, a trial for each of its mean times of a step; one without a time is lost."""
    return [
        completed_result(cell, trial, step_seconds=seconds, **changes)
        for cell, trials in zip(cells, step_seconds, strict=False)
        for trial, seconds in enumerate(trials, start=1)
        if seconds is not None
    ]


def known(value: Value | None) -> Value:
    assert value is not None
    return value


def remeasured(result: RunResult, **changes: Any) -> RunResult:
    """With other values of its MeasuredRun; a name that this lacks is a field of the first part
    that has it.
    """
    measured = result.measured
    assert measured is not None
    for name, value in changes.items():
        places = [
            name,
            *(
                field.name
                for field in fields(measured)
                if hasattr(getattr(measured, field.name), name)
            ),
        ]
        place = next(place for place in places if hasattr(measured, place))
        changed = value if place == name else replace(getattr(measured, place), **{name: value})
        measured = replace(measured, **{place: changed})
    return replace(result, measured=measured)


def make_summary(**changes: Any) -> RunSummary:
    """200 steps of half a second within 300 billed seconds, two minutes after it was asked for;
    ``changes`` may also be fields of its time.
    """
    time = {name: changes.pop(name) for name in [*changes] if name in RunTime.__dataclass_fields__}
    given: dict[str, Any] = {
        "execution_id": "execution-1",
        "cell_id": "0a",
        "cell_label": "ddp",
        "trial": 1,
        "outcome": Outcome.COMPLETED,
        "attempts": 1,
        "instance": "local.cpu",
        "time": RunTime(**{"billable_seconds": 300.0, "seconds": 420.0, **time}),
        "steps": 200,
        "mean_step_seconds": 0.5,
        "is_simulated": False,
        **changes,
    }
    return RunSummary(**given)


def failed_result(
    cell: Cell, trial: int, outcome: Outcome, message: str = "ended badly"
) -> RunResult:
    return result_from(
        run=make_run(cell, trial),
        outcome=outcome,
        attempts=[make_attempt(outcome=outcome, billable_seconds=50.0)],
        message=message,
        log_tail=("line one", "<b>line two</b>"),
    )
