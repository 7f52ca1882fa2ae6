"""Every cell as a table, whose columns are ``CELL_FIGURES`` of the core, and as charts; the batches
that were found.
"""

import re
from collections.abc import Iterable, Mapping, Sequence

from traindyno.core.costs.quantity_text import bytes_text, number_text
from traindyno.core.jobs.outcome import HAD_BATCH
from traindyno.core.jobs.run_end import NONE_FITS
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.verdict.cell_figures import CELL_FIGURES, CellFigure, outcomes_text
from traindyno.core.verdict.cell_row import CellRow
from traindyno.core.verdict.found_batch import batch_of_cell, larger_may_fit
from traindyno.core.verdict.report_data import Report
from traindyno.core.verdict.verdict import Verdict
from traindyno.figures.estimates import Estimate
from traindyno.report.charts.cell_charts import draw_cell_charts
from traindyno.report.markup import (
    Column,
    Markup,
    columns,
    draw_table,
    element,
    estimate_cell,
    join,
)

_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_NUMBERS = re.compile(r"#(?:, #)*(?:, …)?")
COLUMNS = columns("Cell", "# Batch per device", "Fits", "# Samples/s", "# Memory")
BATCHES_CAPTION = (
    "Probes of a few steps, in the order of their batches. Memory: the peak of the process that "
    "needed the most. Rates of probes are not in the verdict; the batch that is marked was "
    "measured. A probe that does not fit ran out of memory, or two jobs died in it. No margin: "
    "CUDA's allocator freed its cache and tried again."
)
CAPTION = (
    "For the whole workload, projected from each trial: overhead once, then all time after the "
    "warm-up at its rate, with the cell's own failures and the expected interruptions. Time is "
    "wall clock, from the job's creation to its end. All means are of one model (cell, place in "
    "the job, block, hosts), so that table, order and ratios agree. The recommended cell's "
    "intervals are corrected for its selection as the best."
)


def draw_batches(report: Report) -> Markup | None:
    """None where no cell searched its batch."""
    with_batches = [result for result in report.results if result.batch_finding]
    # One of each cell: that whose batch was measured. A trial that was lost after its probes leaves
    # another search.
    by_cell = {result.run.cell.cell_id: result for result in sorted(with_batches, key=_is_measured)}
    searched = [result for result in with_batches if by_cell[result.run.cell.cell_id] is result]
    if not searched:
        return None
    rows = [row for result in searched for row in _rows(result)]
    return element(
        "section",
        element("h2", "Batches"),
        draw_table(COLUMNS, rows, caption=BATCHES_CAPTION),
        *(element("p", note) for result in searched if (note := _note(result))),
        id="batches",
    )


def _is_measured(result: RunResult) -> bool:
    return result.outcome in HAD_BATCH


def _note(result: RunResult) -> str | None:
    """What the search leaves open, and that it found none."""
    label = result.run.cell.label
    finding = result.batch_finding
    batch = batch_of_cell([result])
    if finding is None or batch is None:
        return None
    if batch == NONE_FITS:
        return f"{label}: no batch fits, not even {finding.batch}."
    return (
        f"{label}: {batch} or more; no probe tells whether a larger batch fits."
        if larger_may_fit(result)
        else None
    )


def _rows(result: RunResult) -> list[list[str | None]]:
    finding = result.batch_finding
    assert finding is not None
    measured_batch = finding.batch if _is_measured(result) else None
    return [
        [
            result.run.cell.label,
            f"{probe.batch} (measured)" if probe.batch == measured_batch else f"{probe.batch}",
            "yes" if probe.fits else "no margin" if probe.retries else "no",
            None if probe.samples_per_second is None else number_text(probe.samples_per_second),
            bytes_text(probe.peak_bytes),
        ]
        for probe in sorted(finding.probes, key=lambda probe: probe.batch)
    ]


def draw_cells(verdict: Verdict) -> Markup:
    """The table of cells. Figures that no cell has are omitted; if they are not optional, they are
    named below the table.
    """
    rows = verdict.ranked_rows
    shown = [figure for figure in CELL_FIGURES if figure.is_known_of(rows)]
    hidden = [
        figure.heading for figure in CELL_FIGURES if figure not in shown and not figure.is_optional
    ]
    columns = [
        Column(heading=figure.heading, is_number=True, explanation=figure.explanation)
        for figure in shown
    ]
    return element(
        "section",
        element("h2", "Cells"),
        draw_table(
            [Column(heading="Cell"), *columns],
            [[row.label, *(_draw(figure, row) for figure in shown)] for row in rows],
            caption=CAPTION,
            emphasized=[
                index for index, row in enumerate(rows) if row.cell_id == verdict.recommended
            ],
        ),
        element("p", f"Unknown for every cell: {', '.join(hidden)}.", class_="hint")
        if hidden
        else None,
        _not_steady(rows),
        draw_cell_charts(verdict),
        id="cells",
    )


def _draw(figure: CellFigure, row: CellRow) -> str:
    value = figure.value(row)
    if isinstance(value, Mapping):
        return join(
            f"{row.trials} of {sum(value.values())}", element("small", outcomes_text(value))
        )
    if isinstance(value, Estimate) or (value is None and not row.trials):
        return estimate_cell(value, figure.text)
    return figure.plain_text(value)


def _not_steady(rows: Sequence[CellRow]) -> Markup | None:
    """Which cells' trials were not steady, and why."""
    items = []
    for row in rows:
        steadiness = row.steadiness
        trials = f"{steadiness.unsteady_trials} of {row.trials} trials"
        for reason in _merge_reasons(steadiness.unsteady_reasons):
            items.append(element("li", f"{row.label or row.instance}: {trials}. {reason}."))
    if not items:
        return None
    return element(
        "details", element("summary", "Trials that were not steady"), element("ul", *items)
    )


def _merge_reasons(reasons: Iterable[str]) -> list[str]:
    """One text for reasons that differ in their numbers only: the one with the largest last number,
    and of how many.
    """
    kinds: dict[str, list[str]] = {}
    for reason in dict.fromkeys(reasons):
        kinds.setdefault(_NUMBERS.sub("#", _NUMBER.sub("#", reason)), []).append(reason)
    return [
        (
            f"{max(alike, key=lambda reason: float(_NUMBER.findall(reason)[-1]))} (the largest of "
            f"{len(alike)})"
        )
        if len(alike) > 1
        else alike[0]
        for alike in kinds.values()
    ]
