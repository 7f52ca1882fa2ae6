"""A verdict of given figures, for tests of what is said about it."""

from decimal import Decimal
from typing import Any, TypeVar

from traindyno.core.suite.choices import GoalKind
from traindyno.core.suite.goal import Goal
from traindyno.core.verdict.cell_row import CellHosts, CellRow, CellTime, Steadiness
from traindyno.core.verdict.conditions import Sensitivity
from traindyno.core.verdict.found_batch import CellBatch
from traindyno.core.verdict.slow_steps import CellSteps
from traindyno.core.verdict.verdict import Finding, Likeness, MissingRuns, Verdict
from traindyno.figures.estimates import Comparison, Estimate, Interval
from traindyno.figures.selection import Relation, Rival, ToDecide
from traindyno.figures.table import FigureColumn

Group = TypeVar("Group")
BEST = "0000000a"
SECOND = "0000000b"
THIRD = "0000000c"
LABELS = {BEST: "ddp", SECOND: "fsdp", THIRD: "zero1"}


def make_estimate(
    mean: float, low: float | None = None, high: float | None = None, count: int = 3
) -> Estimate:
    interval = (
        None if low is None or high is None else Interval(low=low, high=high, confidence=0.95)
    )
    return Estimate(mean=mean, count=count, variation=0.01, interval=interval)


def make_row(
    cell_id: str = BEST, *, failed: int = 0, diverged: int = 0, outpaced: int = 0, **changes: Any
) -> CellRow:
    """Three trials of one instance: 1,000 s and $10 at 100 samples per second.

    ``changes`` name fields of the row, of its groups, of its steps or of its batch. ``failed``
    contains ``diverged``.
    """
    given: dict[str, Any] = {
        **dict.fromkeys(
            ("tokens_per_second", "steps_per_second", "billable_seconds", "prediction")
        ),
        **dict.fromkeys(("message", "least_behind")),
        "cell_id": cell_id,
        "label": LABELS.get(cell_id, cell_id),
        "instance": "ml.p4d.24xlarge",
        "instance_count": 1,
        "trials": 3,
        "samples_per_second": make_estimate(100.0),
        "seconds": make_estimate(1000.0, 900.0, 1100.0),
        "usd": make_estimate(10.0, 9.0, 11.0),
        "instance_hours": make_estimate(0.25),
        "overhead_seconds": 100.0,
        "training_overhead_seconds": 50.0,
        "billable_share": 1.0,
        "usd_per_instance_hour": Decimal(36),
        "spent_usd": Decimal("1.50"),
        "draws": 3,
        **changes,
    }
    ended = {
        "completed": given["trials"],
        "user_code_error": failed - diverged,
        "loss_diverged": diverged,
    }
    outcomes = {
        outcome: count for outcome, count in {**ended, "outpaced": outpaced}.items() if count
    }
    groups = {
        "time": taken(given, CellTime),
        "steadiness": taken(given, Steadiness),
        "hosts": taken(given, CellHosts),
    }
    parts = (*given.pop("parts", ()), taken(given, CellSteps), taken(given, CellBatch))
    return CellRow(**{"outcomes": outcomes, "parts": parts, **groups, **given})


def taken(given: dict[str, Any], kind: type[Group]) -> Group:
    """The group of these fields, which it takes out of ``given``."""
    return kind(**{name: given.pop(name) for name in kind.__annotations__ if name in given})


def make_rival(
    cell_id: str = SECOND,
    relation: Relation = Relation.BEATEN,
    *,
    ratio: float = 0.8,
    p: float | None = 0.01,
    interval: tuple[float, float] | None = (0.7, 0.9),
    is_across_hosts: bool = False,
) -> Rival:
    known = (
        None if interval is None else Interval(low=interval[0], high=interval[1], confidence=0.95)
    )
    comparison = Comparison(
        ratio=ratio, p=p, interval=known, host_variance=1e-4 if is_across_hosts else None
    )
    return Rival(cell_id=cell_id, comparison=comparison, relation=relation)


def make_verdict(**changes: Any) -> Verdict:
    """ddp beats fsdp by 20 % of its cost.

    ``changes`` name fields of the verdict or of its groups.
    """
    rows = changes.pop("rows", (make_row(), make_row(SECOND)))
    given: dict[str, Any] = {
        "suite_name": "sample",
        "goal": Goal(kind=GoalKind.CHEAPEST),
        "metric": FigureColumn.USD,
        "examples": 100_000,
        "tolerance": 0.02,
        "significance": 0.05,
        "finding": Finding.RECOMMENDED,
        "recommended": BEST,
        "rivals": (make_rival(),),
        "to_decide": ToDecide(),
        "against_baseline": None,
        "refused": {},
        "dropped": {},
        "missing": MissingRuns(),
        "rows": tuple(rows),
        "spent_usd": Decimal("12.40"),
        "is_simulated": False,
        **changes,
    }
    return Verdict(sensitivity=taken(given, Sensitivity), likeness=taken(given, Likeness), **given)
