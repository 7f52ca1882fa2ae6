"""Scaling over instances, with the cost of each size."""

from traindyno.core.costs.quantity_text import number_text, seconds_text, share_text, usd_text
from traindyno.core.verdict.report_data import Report
from traindyno.core.verdict.scaling import ScalingPoint, measure_scaling
from traindyno.core.verdict.verdict import Verdict
from traindyno.report.estimate_text import estimate_cell
from traindyno.report.markup import Markup, element, join
from traindyno.report.table import Column, draw_table

COLUMNS = [
    Column(heading="Cell"),
    Column(heading="Instances", is_number=True),
    Column(heading="Samples/s", is_number=True),
    Column(heading="Speed-up", is_number=True),
    Column(heading="Efficiency", is_number=True),
    Column(heading="Time", is_number=True),
    Column(heading="Cost", is_number=True),
]


def draw_scaling(report: Report) -> Markup | None:
    series = measure_scaling(report.cells, report.results)
    if not series:
        return None
    rows = [_row(report.verdict, point) for each in series for point in each.points]
    return element(
        "section",
        element("h2", "Scaling"),
        draw_table(
            COLUMNS,
            rows,
            caption="Relative to the fewest instances of equal cells. Efficiency: speed-up ÷ ratio of instances.",
        ),
        id="scaling",
    )


def _row(verdict: Verdict, point: ScalingPoint) -> list[str | None]:
    row = verdict.row(point.cell_id)
    interval = point.efficiency_interval
    spread = f"{interval.low * 100:.1f} to {interval.high * 100:.1f} %" if interval else None
    return [
        row.label,
        str(point.instance_count),
        estimate_cell(row.samples_per_second, number_text),
        f"{number_text(point.speed_up)} ×",
        join(share_text(point.efficiency), element("small", spread) if spread else None),
        estimate_cell(row.seconds, seconds_text),
        estimate_cell(row.usd, usd_text),
    ]
