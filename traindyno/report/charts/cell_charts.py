"""Charts with a bar for each cell: the goal's metric, with the zone of indifference, its rate, and its billed time."""

from collections.abc import Callable

from traindyno.core.costs.quantity_text import number_text, seconds_text
from traindyno.core.statistics.estimates import Estimate
from traindyno.core.verdict.cell_row import CellRow
from traindyno.core.verdict.goal_metric import Metric, estimate_of
from traindyno.core.verdict.verdict import Verdict
from traindyno.core.verdict.verdict_text import metric_text
from traindyno.report.charts.figure import draw_figure
from traindyno.report.charts.interval_chart import Bar, Zone, draw_intervals, interval_data
from traindyno.report.charts.plot import Unit, seconds_unit
from traindyno.report.markup import Markup, join

METRIC_NAMES = {
    Metric.SECONDS: "Whole workload, time",
    Metric.USD: "Whole workload, cost",
    Metric.INSTANCE_HOURS: "Whole workload, instance hours",
    Metric.SECONDS_TO_TARGET: "Time until the target is reached",
    Metric.USD_TO_TARGET: "Cost until the target is reached",
}


def draw_verdict_chart(verdict: Verdict) -> Markup | None:
    """None where no cell knows the metric."""
    metric, best = verdict.metric, verdict.estimate(verdict.metric)
    name = f"within the tolerance of {verdict.tolerance * 100:g} %"
    return _draw(
        verdict,
        METRIC_NAMES[metric],
        ("verdict", metric.value),
        lambda row: estimate_of(row, metric),
        unit=seconds_unit if metric.is_time else lambda _: Unit(size=1, before="$" if metric.is_money else ""),
        value_text=lambda value: metric_text(metric, value),
        zone=Zone(low=best.mean, high=best.mean * (1 + verdict.tolerance), name=name) if best else None,
    )


def draw_cell_charts(verdict: Verdict) -> Markup:
    return join(
        _draw(
            verdict,
            "Samples per second, all devices",
            ("samples-per-second", "samples_per_second"),
            lambda row: row.samples_per_second,
            unit=lambda _: Unit(size=1),
            value_text=number_text,
        ),
        _draw(
            verdict,
            "Billed time of each instance, for the whole workload",
            ("billed-seconds", "billable_seconds"),
            lambda row: row.billable_seconds,
            unit=seconds_unit,
            value_text=seconds_text,
        ),
    )


def _draw(
    verdict: Verdict,
    title: str,
    data: tuple[str, str],
    of: Callable[[CellRow], Estimate | None],
    *,
    unit: Callable[[float], Unit],
    value_text: Callable[[float], str],
    zone: Zone | None = None,
) -> Markup | None:
    """``data``: the file's name and the quantity's."""
    bars = [
        Bar(label=row.label, estimate=found, is_best=row.cell_id == verdict.recommended)
        for row in verdict.ranked_rows
        if (found := of(row))
    ]
    if not bars:
        return None
    picture = draw_intervals(bars, title=title, unit=unit, value_text=value_text, zone=zone)
    note = f"bars are 95 % intervals, shaded: {zone.name}" if zone else None
    return draw_figure(title, picture, data=interval_data(*data, bars), note=note)
