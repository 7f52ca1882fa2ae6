"""Response surfaces: cells whose time, cost of a trial and failures are known, on which searches are compared."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from math import exp, log, sqrt
from pathlib import Path
from statistics import fmean, median
from typing import Any

from localcloud.home import REPO_ROOT
from traindyno.core.costs.prices import SECONDS_PER_HOUR
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.suite.cells import make_cell
from traindyno.core.suite.choices import GoalKind, Search, Task
from traindyno.core.suite.goal import Goal
from traindyno.core.suite.suite import Cell, Limits, Measurement, Suite
from traindyno.core.suite.workload import Workload

FOLDER = REPO_ROOT / "tests" / "data" / "surfaces"
TRIALS = 5
# Surfaces of published tables, in a folder of their own, whose runs were assumed alike.
TABLES_FOLDER = FOLDER / "tables"
TABLES = ("vtrain-", "ultrascale-")
TABLE_START, LONGEST = 300.0, 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SurfaceCell:
    """``seconds``: the true time of the whole work; None where every trial fails with ``outcome``.

    ``billable_seconds`` are of one trial on one instance. ``scatter`` holds deviations of measured trials from their
    mean, in logarithms; without them trials scatter normally with ``variation``.
    """

    settings: Mapping[str, Any]
    seconds: float | None
    billable_seconds: float
    variation: float = 0.0
    scatter: tuple[float, ...] = ()
    outcome: Outcome = Outcome.COMPLETED


@dataclass(frozen=True, kw_only=True)
class Surface:
    """``usd_per_hour`` by instance type; empty where the goal is time."""

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
        for name, value in ((name, value) for cell in self.cells for name, value in cell.settings.items()):
            values.setdefault(name, {})[value] = None
        return Suite(
            name=self.name,
            goal=Goal(kind=self.goal),
            workload=Workload(task=Task.CAUSAL_LM, examples=1_000_000),
            training=self.training,
            matrix={name: tuple(found) for name, found in values.items()},
            measurement=Measurement(trials=trials),
            limits=Limits(max_usd=Decimal(10**6), max_hours=Decimal(1000), max_job_seconds=86_400),
            search=search,
        )

    @cached_property
    def table_steps(self) -> float:
        """Steps of the whole work on a surface of a published table, all of one global batch: a run has 100 steps, or
        fewer where these take longer than 600 s, of which 20 are the fewest.
        """
        runs = [(cell.seconds, cell.billable_seconds - TABLE_START) for cell in self.cells if cell.seconds]
        known = [(total / seconds, 100 if seconds < LONGEST else 20) for total, seconds in runs if seconds != LONGEST]
        # Where all runs end by the time limit, their steps take between 6 and 30 s.
        return median([ratio * steps for ratio, steps in known] or [total / 13.0 for total, _ in runs])

    @property
    def is_of_table(self) -> bool:
        return self.name.startswith(TABLES)

    def instances(self, cell: SurfaceCell) -> int:
        return self._count(cell)

    @cached_property
    def suite_cells(self) -> tuple[Cell, ...]:
        suite = self.suite(Search.GRID)
        return tuple(make_cell(suite, cell.settings) for cell in self.cells)

    @cached_property
    def by_id(self) -> Mapping[str, SurfaceCell]:
        return {cell.cell_id: found for cell, found in zip(self.suite_cells, self.cells, strict=True)}

    def value(self, cell_id: str) -> float | None:
        """What the goal minimises: seconds, or USD; None for a cell that fails."""
        found = self.by_id[cell_id]
        if found.seconds is None or self.goal is GoalKind.FASTEST:
            return found.seconds
        hours = found.seconds * self._count(found) / SECONDS_PER_HOUR
        return hours * float(self.usd_per_hour[self._instance(found)])

    @cached_property
    def best_value(self) -> float:
        return min(value for cell_id in self.by_id if (value := self.value(cell_id)) is not None)

    def regret(self, cell_id: str) -> float:
        """How much worse the cell is than the best one, as a share."""
        value = self.value(cell_id)
        return float("inf") if value is None else value / self.best_value - 1

    def trial_seconds(self, cell_id: str) -> float:
        """Billable seconds of one trial, of all its instances."""
        found = self.by_id[cell_id]
        return found.billable_seconds * self._count(found)

    def grid_seconds(self, trials: int = TRIALS) -> float:
        return trials * sum(map(self.trial_seconds, self.by_id))

    def price(self, cell_id: str) -> Decimal | None:
        return self.usd_per_hour.get(self._instance(self.by_id[cell_id]))

    def _instance(self, cell: SurfaceCell) -> str:
        return str({**self.training, **cell.settings}["instance"])

    def _count(self, cell: SurfaceCell) -> int:
        return int({"instance_count": 1, **self.training, **cell.settings}["instance_count"])


def read_surfaces(folder: Path = FOLDER) -> tuple[Surface, ...]:
    """The complete surfaces, in the order of their names."""
    found = (read_surface(path) for path in sorted(folder.glob("*.json")))
    return tuple(surface for surface in found if surface is not None)


def read_surface(path: Path) -> Surface | None:
    """None while not all cells of a measured surface have all their trials."""
    document = json.loads(path.read_text(encoding="utf-8"))
    cells = [_cell(cell) for cell in document["cells"]]
    if None in cells:
        return None
    return Surface(
        name=document["name"],
        origin=document["origin"],
        source=document["source"],
        goal=GoalKind(document["goal"]),
        training=document["training"],
        usd_per_hour={name: Decimal(str(usd)) for name, usd in document.get("usd_per_hour", {}).items()},
        cells=tuple(cell for cell in cells if cell is not None),
    )


def surface_document(surface: Surface) -> dict[str, Any]:
    """The document of a surface with true values; ``read_surface`` reads it."""
    return {
        "name": surface.name,
        "origin": surface.origin,
        "source": surface.source,
        "goal": surface.goal.value,
        "training": dict(surface.training),
        "usd_per_hour": {name: float(usd) for name, usd in surface.usd_per_hour.items()},
        "cells": [_cell_document(cell) for cell in surface.cells],
    }


def render(document: Mapping[str, Any]) -> str:
    """JSON with one cell on each line."""
    cells = ",\n".join(f"    {json.dumps(cell)}" for cell in document["cells"])
    head = json.dumps({name: value for name, value in document.items() if name != "cells"}, indent=2)
    return f'{head[:-2]},\n  "cells": [\n{cells}\n  ]\n}}\n'


def _cell_document(cell: SurfaceCell) -> dict[str, Any]:
    found = {"settings": dict(cell.settings), "billable_seconds": cell.billable_seconds}
    if cell.seconds is None:
        return {**found, "outcome": cell.outcome.value}
    return {**found, "seconds": cell.seconds, "variation": cell.variation}


def _cell(document: Mapping[str, Any]) -> SurfaceCell | None:
    if "trials" in document:
        return _measured(document) if len(document["trials"]) > 2 else None
    return SurfaceCell(
        settings=document["settings"],
        seconds=document.get("seconds"),
        billable_seconds=document["billable_seconds"],
        variation=document.get("variation", 0.0),
        outcome=Outcome(document.get("outcome", Outcome.COMPLETED)),
    )


def _measured(document: Mapping[str, Any]) -> SurfaceCell:
    """Trials are drawn from the measured ones; their scatter is widened, since their mean was taken from them."""
    logs = [log(trial["seconds"]) for trial in document["trials"]]
    center, widening = fmean(logs), sqrt(len(logs) / (len(logs) - 1))
    return SurfaceCell(
        settings=document["settings"],
        seconds=exp(center),
        billable_seconds=fmean([trial["billable_seconds"] for trial in document["trials"]]),
        scatter=tuple((value - center) * widening for value in logs),
    )
