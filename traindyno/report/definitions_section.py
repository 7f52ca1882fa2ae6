"""Samples per second by every definition in use, from the same logs, side by side with ours."""

from collections.abc import Sequence

from traindyno.core.cell_row import is_measured
from traindyno.core.quantity_text import number_text
from traindyno.core.report_data import Report
from traindyno.core.run_result import RunResult
from traindyno.core.statistics import estimate
from traindyno.core.throughput_definitions import DEFINITIONS
from traindyno.report.markup import Markup, element, join
from traindyno.report.table import Column, draw_table


def draw_definitions(report: Report) -> Markup | None:
    by_cell = [
        (cell.label, [each for each in report.results if each.run.cell.cell_id == cell.cell_id and is_measured(each)])
        for cell in report.cells
    ]
    measured = [(label, results) for label, results in by_cell if results]
    if not measured:
        return None
    ours = [_mean([each.samples_per_second for each in results]) for _, results in measured]
    rows = [["Traindyno: all samples ÷ slowest rank's steady window", *map(number_text, ours)]]
    for definition in DEFINITIONS:
        values = [_mean([_rate(each, definition.key) for each in results]) for _, results in measured]
        heading = join(definition.source, element("small", definition.formula))
        rows.append([heading, *(_compared(value, own) for value, own in zip(values, ours, strict=True))])
    columns = [Column(heading="Definition"), *(Column(heading=label, is_number=True) for label, _ in measured)]
    return element(
        "section",
        element("h2", "The same runs by other definitions"),
        draw_table(columns, rows, caption="Samples per second; small: difference from ours.", emphasized=[0]),
        element("p", "MLPerf defines no throughput: it measures the time to a quality target.", class_="hint"),
        id="definitions",
    )


def _rate(result: RunResult, key: str) -> float | None:
    rates = result.measured.definitions if result.measured else ()
    return next((rate.samples_per_second for rate in rates if rate.key == key), None)


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value]
    return estimate(known).mean if known and len(known) == len(values) else None


def _compared(value: float | None, own: float | None) -> Markup:
    if value is None or own is None:
        return element("span", "–", class_="absent", title="the runs are too short for this definition")
    return join(number_text(value), element("small", f"{(value / own - 1) * 100:+.1f} %"))
