"""The search: the cells that each round measured, and the cells that were never measured."""

from collections.abc import Sequence

from traindyno.core.costs.prices import SECONDS_PER_HOUR
from traindyno.core.costs.quantity_text import UNKNOWN, number_text, seconds_text
from traindyno.core.suite.suite import Cell
from traindyno.core.verdict.report_data import Report
from traindyno.core.verdict.search_path import RoundOutcome, follow_search
from traindyno.report.charts.figure import draw_figure
from traindyno.report.charts.plot import at, row_label, svg, text
from traindyno.report.download import PlotData
from traindyno.report.markup import Markup, element

WIDTH, LABEL_WIDTH = 1040, 392
ROW_HEIGHT, TOP, BOTTOM = 20, 30, 8
WIDEST_COLUMN = 90
MOST_CELLS = 60
TITLE = "Trials by round"


def draw_search(report: Report) -> Markup | None:
    """None where the rounds are not known."""
    outcomes = follow_search(report.rounds, report.results)
    if not outcomes:
        return None
    cells = _ranked(report)
    measured = {cell_id for outcome in outcomes for cell_id in outcome.trials}
    unmeasured = [cell.label for cell in cells if cell.cell_id not in measured]
    shown = [cell for cell in cells if cell.cell_id in measured][:MOST_CELLS]
    note = f"the best {MOST_CELLS} of {len(measured)} cells; the data holds all" if len(measured) > MOST_CELLS else None
    return element(
        "section",
        element("h2", "The search"),
        element("p", f"Search: {report.suite.search}.", f" {_spent(outcomes)}"),
        draw_figure(TITLE, _draw(shown, outcomes, report), data=_data(cells, outcomes), note=note) if shown else None,
        _unmeasured(unmeasured),
        id="search",
    )


def _ranked(report: Report) -> list[Cell]:
    place = {row.cell_id: index for index, row in enumerate(report.verdict.ranked_rows)}
    return sorted(report.cells, key=lambda cell: place.get(cell.cell_id, len(place)))


def _spent(outcomes: Sequence[RoundOutcome]) -> str:
    runs = sum(sum(outcome.trials.values()) for outcome in outcomes)
    known = [outcome.billable_seconds for outcome in outcomes]
    billed = None if None in known else sum(value for value in known if value is not None)
    hours = UNKNOWN if billed is None else number_text(billed / SECONDS_PER_HOUR)
    rounds = "1 round" if len(outcomes) == 1 else f"{len(outcomes)} rounds"
    return f"{runs} runs in {rounds}, {hours} billed instance hours."


def _draw(cells: Sequence[Cell], outcomes: Sequence[RoundOutcome], report: Report) -> Markup:
    height = TOP + ROW_HEIGHT * len(cells) + BOTTOM
    width = min(WIDEST_COLUMN, (WIDTH - LABEL_WIDTH) / len(outcomes))
    most = max(count for outcome in outcomes for count in outcome.trials.values())
    places = [LABEL_WIDTH + width * (column + 0.5) for column in range(len(outcomes))]
    headings = (
        text(f"{outcome.number}", x, TOP - 10, class_="tick", anchor="middle")
        for x, outcome in zip(places, outcomes, strict=True)
    )
    rows = []
    for index, cell in enumerate(cells):
        y, is_best = TOP + ROW_HEIGHT * (index + 0.5), report.verdict.recommended == cell.cell_id
        dots = (
            _dot(cell, outcome, x, y, most)
            for x, outcome in zip(places, outcomes, strict=True)
            if cell.cell_id in outcome.trials
        )
        emphasis = "best" if is_best else "other"
        label = row_label(cell.label, LABEL_WIDTH - 14, y, class_=f"label {emphasis}", lines=1)
        rows.append(element("g", label, *dots, class_=emphasis))
    described = "; ".join(
        f"round {outcome.number}: {sum(outcome.trials.values())} runs of {len(outcome.trials)} cells"
        for outcome in outcomes
    )
    return svg(
        WIDTH,
        height,
        text("round", LABEL_WIDTH - 14, TOP - 10, class_="axis", anchor="end"),
        *headings,
        *rows,
        title=TITLE,
        description=described,
    )


def _dot(cell: Cell, outcome: RoundOutcome, x: float, y: float, most: int) -> Markup:
    """The area of a dot grows with the trials."""
    count, bound = outcome.trials[cell.cell_id], outcome.outpaced.get(cell.cell_id)
    outpaced = f", outpaced: {bound}" if bound else ""
    return element(
        "circle",
        element("title", f"{cell.label}: {count} in round {outcome.number}{outpaced}, {_billed(outcome)}"),
        class_="dot outpaced" if bound else "dot",
        cx=at(x),
        cy=at(y),
        r=at(3 + 5 * (count / most) ** 0.5),
    )


def _billed(outcome: RoundOutcome) -> str:
    return f"{seconds_text(outcome.billable_seconds)} of instances in the round"


def _unmeasured(labels: Sequence[str]) -> Markup | None:
    if not labels:
        return None
    verb = "cell was" if len(labels) == 1 else "cells were"
    return element(
        "details",
        element("summary", f"{len(labels)} {verb} not measured"),
        element("ul", *(element("li", label) for label in labels)),
    )


def _data(cells: Sequence[Cell], outcomes: Sequence[RoundOutcome]) -> PlotData:
    return PlotData(
        name="search",
        header=("cell_id", "cell", *(f"trials_in_round_{outcome.number}" for outcome in outcomes)),
        rows=[
            (cell.cell_id, cell.label, *(outcome.trials.get(cell.cell_id, 0) for outcome in outcomes)) for cell in cells
        ],
    )
