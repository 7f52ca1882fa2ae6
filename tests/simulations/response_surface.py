"""Response surfaces: cells whose time, cost of a trial and failures are known, on which searches
are compared.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from statistics import fmean, geometric_mean, median
from typing import Any

from localcloud.home import REPO_ROOT
from traindyno.core.costs.prices import SECONDS_PER_HOUR
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.run.workload import Workload
from traindyno.core.suite.cells import Cell, make_cell
from traindyno.core.suite.choices import GoalKind, Search, Task
from traindyno.core.suite.goal import Goal
from traindyno.core.suite.suite import Limits, Measurement, Suite

FOLDER = REPO_ROOT / "tests" / "data" / "surfaces"
EXAMPLES = 1_000_000
TRIALS = 5
# Surfaces of published tables, in a folder of their own, whose runs were assumed alike.
TABLES_FOLDER = FOLDER / "tables"
TABLES = ("vtrain-", "ultrascale-")
TABLE_START = 300.0
LONGEST = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SurfaceCell:
    """A cell with the true time of the whole work, or None if every trial fails with ``outcome``.

    ``billable_seconds`` are of one trial on one instance.
    """

    settings: Mapping[str, Any]
    seconds: float | None
    billable_seconds: float
    outcome: Outcome = Outcome.COMPLETED


@dataclass(frozen=True, kw_only=True)
class Surface:
    """The cells of a published table; the prices by instance type are empty if the goal is time."""

    name: str
    origin: str
    source: str
    goal: GoalKind
    training: Mapping[str, Any]
    usd_per_hour: Mapping[str, Decimal] = field(default_factory=dict)
    cells: tuple[SurfaceCell, ...]

    def suite(self, search: Search, *, trials: int = TRIALS) -> Suite:
        """Its matrix has the values of the axes; ``suite_cells`` are the cells."""
        values: dict[str, dict[Any, None]] = {}
        for name, value in (
            (name, value) for cell in self.cells for name, value in cell.settings.items()
        ):
            values.setdefault(name, {})[value] = None
        return Suite(
            name=self.name,
            goal=Goal(kind=self.goal),
            workload=Workload(task=Task.CAUSAL_LM, examples=EXAMPLES),
            training=self.training,
            matrix={name: tuple(choices) for name, choices in values.items()},
            measurement=Measurement(trials=trials),
            limits=Limits(max_usd=Decimal(10**6), max_hours=Decimal(1000), max_job_seconds=86_400),
            search=search,
        )

    @cached_property
    def table_steps(self) -> float:
        """Steps of the whole work on a surface of a published table, all of one global batch: a run
        has 100 steps, or fewer where these take longer than 600 s, of which 20 are the fewest.
        """
        runs = [
            (cell.seconds, cell.billable_seconds - TABLE_START)
            for cell in self.cells
            if cell.seconds
        ]
        known = [
            (total / seconds, 100 if seconds < LONGEST else 20)
            for total, seconds in runs
            if seconds != LONGEST
        ]
        # Where all runs end by the time limit, their steps take between 6 and 30 s.
        return median(
            [ratio * steps for ratio, steps in known] or [total / 13.0 for total, _ in runs]
        )

    @property
    def is_of_table(self) -> bool:
        return self.name.startswith(TABLES)

    def instances(self, cell: SurfaceCell) -> int:
        return int({"instance_count": 1, **self.training, **cell.settings}["instance_count"])

    @cached_property
    def suite_cells(self) -> tuple[Cell, ...]:
        suite = self.suite(Search.GRID)
        return tuple(make_cell(suite, cell.settings) for cell in self.cells)

    @cached_property
    def by_id(self) -> Mapping[str, SurfaceCell]:
        return {
            cell.cell_id: suite_cell
            for cell, suite_cell in zip(self.suite_cells, self.cells, strict=True)
        }

    def value(self, cell_id: str) -> float | None:
        """What the goal minimises: seconds, or USD; None for a cell that fails."""
        cell = self.by_id[cell_id]
        if cell.seconds is None or self.goal is GoalKind.FASTEST:
            return cell.seconds
        hours = cell.seconds * self.instances(cell) / SECONDS_PER_HOUR
        return hours * float(self.usd_per_hour[self._instance(cell)])

    @cached_property
    def best_value(self) -> float:
        return min(value for cell_id in self.by_id if (value := self.value(cell_id)) is not None)

    def regret(self, cell_id: str) -> float:
        """How much worse the cell is than the best one, as a share."""
        value = self.value(cell_id)
        return float("inf") if value is None else value / self.best_value - 1

    def price(self, cell_id: str) -> Decimal | None:
        return self.usd_per_hour.get(self._instance(self.by_id[cell_id]))

    def _instance(self, cell: SurfaceCell) -> str:
        return str({**self.training, **cell.settings}["instance"])


def surface_of(name: str, seconds: Sequence[float]) -> Surface:
    """A cell for each of these true times of the whole work."""
    cells = tuple(
        SurfaceCell(
            settings={"batch_size_per_device": batch}, seconds=second, billable_seconds=100.0
        )
        for batch, second in enumerate(seconds, start=1)
    )
    training = {"instance": "ml.p4d.24xlarge"}
    return Surface(
        name=name,
        origin="generated",
        source="",
        goal=GoalKind.FASTEST,
        training=training,
        cells=cells,
    )


def read_surfaces(folder: Path = FOLDER) -> tuple[Surface, ...]:
    """In the order of their names."""
    return tuple(read_surface(path) for path in sorted(folder.glob("*.json")))


def read_surface(path: Path) -> Surface:
    document = json.loads(path.read_text(encoding="utf-8"))
    return Surface(
        name=document["name"],
        origin=document["origin"],
        source=document["source"],
        goal=GoalKind(document["goal"]),
        training=document["training"],
        usd_per_hour={
            name: Decimal(str(usd)) for name, usd in document.get("usd_per_hour", {}).items()
        },
        cells=tuple(map(_cell, document["cells"])),
    )


def _cell(document: Mapping[str, Any]) -> SurfaceCell:
    """A measured one has trials, whose geometric mean is its truth."""
    trials = document.get("trials", ())
    return SurfaceCell(
        settings=document["settings"],
        seconds=geometric_mean([trial["seconds"] for trial in trials])
        if trials
        else document.get("seconds"),
        billable_seconds=fmean([trial["billable_seconds"] for trial in trials or [document]]),
        outcome=Outcome(document.get("outcome", Outcome.COMPLETED)),
    )
