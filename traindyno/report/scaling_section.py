"""Scaling over instances, with the cost of each size."""

from collections.abc import Sequence

from traindyno.core.costs.quantity_text import number_text, seconds_text, share_text, usd_text
from traindyno.core.verdict.report_data import Report
from traindyno.core.verdict.scaling import ScalingPoint, ScalingSeries, measure_scaling
from traindyno.core.verdict.scaling_fit import ScalingFit
from traindyno.core.verdict.scaling_text import describe_scaling
from traindyno.core.verdict.verdict import Verdict
from traindyno.report.download import PlotData
from traindyno.report.estimate_text import estimate_cell
from traindyno.report.figure import draw_figure
from traindyno.report.markup import Markup, element, join
from traindyno.report.scaling_chart import MeasuredPoint, ScalingLine, draw_scaling_lines
from traindyno.report.table import Column, draw_table

MOST_LINES, MOST_POINTS = 8, 40
COLUMNS = [
    Column(heading="Cell"),
    Column(heading="Instances", is_number=True),
    Column(heading="Samples/s", is_number=True),
    Column(heading="Speed-up", is_number=True),
    Column(heading="Efficiency, weak", is_number=True),
    Column(heading="Efficiency, strong", is_number=True),
    Column(heading="Time", is_number=True),
    Column(heading="Cost", is_number=True),
]


def draw_scaling(report: Report) -> Markup | None:
    series = measure_scaling(report.cells, report.results)
    if not series and not report.verdict.scaling:
        return None
    rows = [_row(report.verdict, point) for each in series for point in each.points]
    lines = [_line(report, each) for each in series]
    return element(
        "section",
        element("h2", "Scaling"),
        _figure([line for line in lines if len(line.points) > 1]),
        _table(rows),
        *(_curve(report.verdict, fit) for fit in report.verdict.scaling),
        id="scaling",
    )


def _table(rows: Sequence[Sequence[str | None]]) -> Markup | None:
    if not rows:
        return None
    return draw_table(
        COLUMNS,
        rows,
        caption="Relative to the fewest instances of equal cells. Weak: speed-up ÷ ratio of instances, for the "
        "same batch per device. Strong: the whole workload's time, with all that is paid once.",
    )


def _figure(lines: Sequence[ScalingLine]) -> Markup | None:
    if not lines:
        return None
    title = "Samples per second over instances"
    curve = "; lines: the fitted curve, with all that is paid once" if any(line.fit for line in lines) else ""
    note = f"dots: measured; dashed: ideal, in proportion to the fewest instances{curve}"
    left_out = f"; the first {MOST_LINES} of {len(lines)} series" if len(lines) > MOST_LINES else ""
    data = PlotData(
        name="scaling",
        header=("series", "instances", "samples_per_second", "ideal_samples_per_second", "fitted_samples_per_second"),
        rows=[
            (
                line.label,
                point.instance_count,
                point.rate.mean,
                line.ideal_rate(point.instance_count),
                line.fitted(point),
            )
            for line in lines
            for point in line.points
        ],
    )
    picture = draw_scaling_lines(lines[:MOST_LINES], title=title)
    return draw_figure(title, picture, data=data, note=f"{note}{left_out}")


def _line(report: Report, series: ScalingSeries) -> ScalingLine:
    verdict = report.verdict
    rows = [(point, verdict.row(point.cell_id)) for point in series.points]
    return ScalingLine(
        label=rows[0][1].label.removeprefix(f"{rows[0][0].instance_count} × "),
        points=tuple(
            MeasuredPoint(instance_count=point.instance_count, rate=row.samples_per_second)
            for point, row in rows
            if row.samples_per_second
        ),
        fit=_fitted(report, series),
    )


def _fitted(report: Report, series: ScalingSeries) -> tuple[tuple[float, float], ...]:
    """Rates of the fitted curve from the fewest instances to twice the most; empty where no curve was fitted."""
    ids = {point.cell_id for point in series.points}
    fits = (each for each in report.verdict.scaling if each.step is None and ids & set(each.cell_ids))
    fit = next(fits, None)
    if fit is None:
        return ()
    workers = next(cell.settings.loader_workers for cell in report.cells if cell.cell_id in ids)
    fewest, most = series.points[0].instance_count, 2 * series.points[-1].instance_count
    counts = range(fewest, most + 1, max(1, (most - fewest) // MOST_POINTS))
    return tuple((float(count), report.verdict.examples / fit.seconds(count, workers)) for count in counts)


def _curve(verdict: Verdict, fit: ScalingFit) -> Markup:
    labels = ", ".join(verdict.row(cell_id).label for cell_id in fit.cell_ids)
    return join(
        element("h3", "Curve" if fit.step is None else f"Curve for a global batch of {fit.step.samples:,} samples"),
        element("p", labels, class_="hint"),
        element("ul", *(element("li", line) for line in describe_scaling(fit))),
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
        share_text(point.strong_efficiency),
        estimate_cell(row.seconds, seconds_text),
        estimate_cell(row.usd, usd_text),
    ]
