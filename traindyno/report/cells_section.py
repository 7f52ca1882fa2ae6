"""Every cell, measured or not, as a table and as charts. Its columns are ``CELL_FIGURES`` of the core."""

from collections.abc import Mapping, Sequence

from traindyno.core.statistics.estimates import Estimate
from traindyno.core.verdict.cell_figures import CELL_FIGURES, CellFigure, outcomes_text
from traindyno.core.verdict.cell_row import CellRow
from traindyno.core.verdict.open_text import merge_reasons
from traindyno.core.verdict.verdict import Verdict
from traindyno.report.charts.cell_charts import draw_cell_charts
from traindyno.report.markup import Column, Markup, draw_table, element, estimate_cell, join

CAPTION = (
    "For the whole workload, projected from each trial: overhead once, then all time after the warm-up at its rate,"
    " with the cell's own failures and the expected interruptions. Time is wall clock, from the job's creation to its"
    " end. All means are of one model (cell, place in the job, block, hosts), so that table, order and ratios agree."
    " The recommended cell's intervals are corrected for its selection as the best."
)


def draw_cells(verdict: Verdict) -> Markup:
    """Figures that no cell has are omitted; those that are not optional are named below the table."""
    rows = verdict.ranked_rows
    shown = [each for each in CELL_FIGURES if each.is_known_of(rows)]
    hidden = [each.heading for each in CELL_FIGURES if each not in shown and not each.is_optional]
    columns = [Column(heading=each.heading, is_number=True, explanation=each.explanation) for each in shown]
    return element(
        "section",
        element("h2", "Cells"),
        draw_table(
            [Column(heading="Cell"), *columns],
            [[row.label, *(_draw(each, row) for each in shown)] for row in rows],
            caption=CAPTION,
            emphasized=[index for index, row in enumerate(rows) if row.cell_id == verdict.recommended],
        ),
        element("p", f"Unknown for every cell: {', '.join(hidden)}.", class_="hint") if hidden else None,
        _not_steady(rows),
        draw_cell_charts(verdict),
        id="cells",
    )


def _draw(figure: CellFigure, row: CellRow) -> str:
    value = figure.value(row)
    if isinstance(value, Mapping):
        return join(f"{row.trials} of {sum(value.values())}", element("small", outcomes_text(value)))
    if isinstance(value, Estimate) or (value is None and not row.trials):
        return estimate_cell(value, figure.text)
    return figure.plain_text(value)


def _not_steady(rows: Sequence[CellRow]) -> Markup | None:
    """Which cells' trials were not steady, and why."""
    items = [
        element("li", f"{row.label or row.instance}: {found.unsteady_trials} of {row.trials} trials. {reason}.")
        for row in rows
        for found in (row.steadiness,)
        for reason in merge_reasons(found.unsteady_reasons)
    ]
    if not items:
        return None
    return element("details", element("summary", "Trials that were not steady"), element("ul", *items))
