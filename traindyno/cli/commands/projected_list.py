"""`traindyno list --projected`: the projections that a lab kept of its executions, with what came
of them.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any

from rich.table import Table

from traindyno.api.lab_target import LabTarget
from traindyno.cli.output import (
    SIMULATED,
    STANDARD_OUTPUT,
    OutputFormat,
    print_json,
    tell,
    titled_table,
)
from traindyno.core.costs.prices import SECONDS_PER_HOUR
from traindyno.core.costs.projected_actual import (
    TEXTS,
    ProjectedActual,
    job_seconds,
    job_usd,
    summarise_ratios,
)
from traindyno.core.costs.quantity_text import number_text
from traindyno.core.documents.stored import to_document
from traindyno.core.planning.plan import read_stored_plan
from traindyno.core.s3_keys import plan_key
from traindyno.store.results import load_results
from traindyno.store.results_bucket import ResultsBucket

# Quantity → what is counted of its ratios.
Ratios = Mapping[str, Mapping[str, float]]


def list_projected(target: LabTarget, limit: int, output: OutputFormat) -> None:
    """Print a row for each of the newest ``limit`` executions that succeeded, and for each cell;
    below them the ratios by kind.
    """
    rows = [
        row
        for execution in target.executions.list_latest(limit)
        if execution.status == "SUCCEEDED"
        for row in _rows_of(target, execution.execution_id)
    ]
    ratios = _ratios(rows)
    if output is OutputFormat.JSON:
        print_json({"executions": [_document(row) for row in rows], "ratios": ratios})
    elif not rows:
        tell(
            "none has a projection: a suite has one by earlier runs or by init, a training by a "
            "verdict"
        )
    else:
        if any(row["is_simulated"] for row in rows):
            STANDARD_OUTPUT.print(SIMULATED)
        STANDARD_OUTPUT.print(_table(rows, ratios))


def _rows_of(target: LabTarget, execution_id: str) -> Iterator[dict[str, Any]]:
    """What each feature projected of an execution, and then its plan, up to the first that
    projected all of it and not only cells.
    """
    row = target.services.executions.find(execution_id)
    is_simulated = bool(row and row.judgement and row.judgement.is_simulated)
    readers = {feature.name: feature.read_projected for feature in target.features}
    for kind, read in {**readers, "suite": _planned}.items():
        compared = tuple(read(target.results, execution_id))
        if compared:
            yield {
                "execution_id": execution_id,
                "of": kind,
                "is_simulated": is_simulated,
                "compared": compared,
            }
        if any(comparison.cell is None for comparison in compared):
            break


def _ratios(rows: Iterable[Mapping[str, Any]]) -> dict[str, Ratios]:
    by_kind: dict[str, list[ProjectedActual]] = {}
    for row in rows:
        by_kind.setdefault(row["of"], []).extend(row["compared"])
    return {kind: summarise_ratios(comparisons) for kind, comparisons in by_kind.items()}


def _document(row: Mapping[str, Any]) -> dict[str, Any]:
    compared = [
        to_document(comparison) | {"ratio": comparison.ratio, "side": comparison.side}
        for comparison in row["compared"]
    ]
    return {**row, "compared": compared}


def _table(rows: Iterable[Mapping[str, Any]], ratios: Mapping[str, Ratios]) -> Table:
    """The comparisons of each row by quantity, and below each kind's ratios."""
    quantities = [name for name in TEXTS if any(name in sums for sums in ratios.values())]
    table = titled_table(
        "actual ÷ projected", "execution~", "of", *(f"{name}~" for name in quantities)
    )
    for row in rows:
        for cell, of_cell in groupby(row["compared"], lambda comparison: comparison.cell):
            texts = {
                comparison.quantity: _ratio_text(comparison)
                for comparison in of_cell
                if comparison.ratio is not None
            }
            kind = f"{row['of']}: {cell}" if cell else row["of"]
            table.add_row(row["execution_id"], kind, *(texts.get(name, "") for name in quantities))
    for kind, sums in ratios.items():
        table.add_section()
        known = [sums.get(name, {}) for name in quantities]
        for end in ("minimum", "median", "maximum"):
            ends = (number_text(figures[end]) if figures else "" for figures in known)
            table.add_row(end, kind, *ends)
        held = (
            f"{figures['inside']} of {figures['intervals']}" if figures.get("intervals") else ""
            for figures in known
        )
        table.add_row("inside the interval", kind, *held)
    return table


def _ratio_text(comparison: ProjectedActual) -> str:
    """Measured value by projected value, as in ``58.0 s ÷ 56.1 s = 1.03, inside``."""
    text = TEXTS[comparison.quantity]
    side = f", {comparison.side}" if comparison.side else ""
    actual = text(comparison.actual)
    projected = text(comparison.projected)
    return f"{actual} ÷ {projected} = {number_text(comparison.ratio)}{side}"


def _planned(bucket: ResultsBucket, execution_id: str) -> Iterator[ProjectedActual]:
    """The plan's expectation from earlier runs of the same cells, beside the jobs of the runs."""
    plan = bucket.find_as(plan_key(execution_id), read_stored_plan)
    if plan is not None and plan.expected.hours is not None:
        results = load_results(bucket, execution_id)
        usd = plan.expected.usd
        seconds = float(plan.expected.hours * SECONDS_PER_HOUR)
        yield ProjectedActual(quantity="time", projected=seconds, actual=job_seconds(results))
        yield ProjectedActual(
            quantity="cost", projected=None if usd is None else float(usd), actual=job_usd(results)
        )
