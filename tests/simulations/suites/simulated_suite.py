"""The suite of a simulation: one axis, 100,000 steps of work, and checkpoints that cost nothing."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from traindyno.core.run.workload import Workload
from traindyno.core.suite.cells import Cell, make_cell
from traindyno.core.suite.choices import GoalKind, Purchase, Search, Task
from traindyno.core.suite.goal import Goal
from traindyno.core.suite.suite import Limits, Measurement, Suite

FULL_STEPS = 100_000
SAMPLES_PER_STEP = 8
CHECKPOINT_STEPS = 50


def make_suite(
    *,
    trials: int,
    matrix: Mapping[str, tuple[Any, ...]],
    training: Mapping[str, Any],
    **changes: Any,
) -> Suite:
    given: dict[str, Any] = {
        "name": "simulated",
        "goal": Goal(kind=GoalKind.FASTEST),
        "workload": Workload(task=Task.CAUSAL_LM, examples=FULL_STEPS * SAMPLES_PER_STEP),
        "training": {"instance": "ml.p4d.24xlarge", **training},
        "matrix": matrix,
        "measurement": Measurement(trials=trials, checkpoint_every_steps=CHECKPOINT_STEPS),
        "limits": Limits(max_usd=Decimal(10**6), max_hours=Decimal(1000), max_job_seconds=86_400),
        "purchase": Purchase.ON_DEMAND,
        "search": Search.GRID,
        **changes,
    }
    return Suite(**given)


def cells_of(suite: Suite) -> tuple[Cell, ...]:
    """The grid's points, in the order of the axis."""
    ((name, values),) = suite.matrix.items()
    return tuple(make_cell(suite, {name: value}) for value in values)
