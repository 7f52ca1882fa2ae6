"""`traindyno list --projected`: the projections that a lab kept of its executions, with what came
of them.
"""

from collections.abc import Iterator
from itertools import groupby
from typing import Any

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


def list_projected(target: LabTarget, limit: int, output: OutputFormat) -> None:
    """A row for each that succeeded, of the newest ``limit``, and for each cell; below it the
    ratios by kind.
    """
    rows: list[dict[str, Any]] = []
    by_kind: dict[str, list[ProjectedActual]] = {}
    for name in (
        execution.execution_id
        for execution in target.executions.list_latest(limit)
        if execution.status == "SUCCEEDED"
    ):
        row = target.services.executions.find(name)
        is_simulated = bool(row and row.judgement and row.judgement.is_simulated)
        readers = {feature.name: feature.read_projected for feature in target.features}
        for of, read in {**readers, "suite": _planned}.items():
            compared = tuple(read(target.results, name))
            if compared:
                by_kind.setdefault(of, []).extend(compared)
                rows.append(
                    {
                        "execution_id": name,
                        "of": of,
                        "is_simulated": is_simulated,
                        "compared": compared,
                    }
                )
            if any(one.cell is None for one in compared):
                break
    ratios = {of: summarise_ratios(comparisons) for of, comparisons in by_kind.items()}
    if output is OutputFormat.JSON:
        for listed in rows:
            listed["compared"] = [
                to_document(one) | {"ratio": one.ratio, "side": one.side}
                for one in listed["compared"]
            ]
        print_json({"executions": rows, "ratios": ratios})
        return
    if not rows:
        tell(
            "none has a projection: a suite has one by earlier runs or by init, a training by a "
            "verdict"
        )
        return
    quantities = [name for name in TEXTS if any(name in sums for sums in ratios.values())]
    table = titled_table(
        "actual ÷ projected", "execution~", "of", *(f"{name}~" for name in quantities)
    )
    for listed in rows:
        for cell, of_cell in groupby(listed["compared"], lambda one: one.cell):
            texts = {one.quantity: _ratio_text(one) for one in of_cell if one.ratio is not None}
            of = f"{listed['of']}: {cell}" if cell else listed["of"]
            table.add_row(listed["execution_id"], of, *(texts.get(name, "") for name in quantities))
    for of, sums in ratios.items():
        table.add_section()
        known = [sums.get(name, {}) for name in quantities]
        for end in ("minimum", "median", "maximum"):
            table.add_row(
                end, of, *(number_text(figures[end]) if figures else "" for figures in known)
            )
        held = (
            f"{figures['inside']} of {figures['intervals']}" if figures.get("intervals") else ""
            for figures in known
        )
        table.add_row("inside the interval", of, *held)
    if any(listed["is_simulated"] for listed in rows):
        STANDARD_OUTPUT.print(SIMULATED)
    STANDARD_OUTPUT.print(table)


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
