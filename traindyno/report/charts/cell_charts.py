"""Charts with a bar for each cell: its rate, and its billed time."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from traindyno.core.costs.quantity_text import number_text, seconds_text
from traindyno.core.statistics.estimates import Estimate
from traindyno.core.verdict.cell_row import CellRow
from traindyno.report.charts.figure import draw_figure
from traindyno.report.charts.interval_chart import Bar, draw_intervals, interval_data
from traindyno.report.charts.plot import Unit, seconds_unit
from traindyno.report.markup import Markup


@dataclass(frozen=True, slots=True, kw_only=True)
class CellChart:
    """A bar for each cell that has the quantity; ``name`` and ``quantity`` are those of its data."""

    title: str
    name: str
    quantity: str
    of: Callable[[CellRow], Estimate | None]
    unit: Callable[[float], Unit]
    value_text: Callable[[float], str]

    def draw(self, rows: Sequence[CellRow], best: str | None) -> Markup | None:
        found = [(row, estimate) for row in rows if (estimate := self.of(row))]
        if not found:
            return None
        bars = [Bar(label=row.label, estimate=estimate, is_best=row.cell_id == best) for row, estimate in found]
        picture = draw_intervals(bars, title=self.title, unit=self.unit, value_text=self.value_text)
        return draw_figure(self.title, picture, data=interval_data(self.name, self.quantity, bars))


CELL_CHARTS = (
    CellChart(
        title="Samples per second, all devices",
        name="samples-per-second",
        quantity="samples_per_second",
        of=lambda row: row.samples_per_second,
        unit=lambda _: Unit(size=1),
        value_text=number_text,
    ),
    CellChart(
        title="Billed time of each instance, for the whole workload",
        name="billed-seconds",
        quantity="billable_seconds",
        of=lambda row: row.billable_seconds,
        unit=seconds_unit,
        value_text=seconds_text,
    ),
)
