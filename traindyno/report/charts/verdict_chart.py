"""The picture of the verdict: every cell by the goal's metric, the best first, with the zone of indifference."""

from traindyno.core.verdict.goal_metric import Metric, estimate_of
from traindyno.core.verdict.verdict import Verdict
from traindyno.core.verdict.verdict_text import metric_text
from traindyno.report.charts.figure import draw_figure
from traindyno.report.charts.interval_chart import Bar, Zone, draw_intervals, interval_data
from traindyno.report.charts.plot import Unit, seconds_unit
from traindyno.report.markup import Markup

METRIC_NAMES = {
    Metric.SECONDS: "Whole workload, time",
    Metric.USD: "Whole workload, cost",
    Metric.INSTANCE_HOURS: "Whole workload, instance hours",
    Metric.SECONDS_TO_TARGET: "Time until the target is reached",
    Metric.USD_TO_TARGET: "Cost until the target is reached",
}


def draw_verdict_chart(verdict: Verdict) -> Markup | None:
    """None where no cell knows the metric."""
    bars = [
        Bar(label=row.label, estimate=found, is_best=row.cell_id == verdict.recommended)
        for row in verdict.ranked_rows
        if (found := estimate_of(row, verdict.metric))
    ]
    if not bars:
        return None
    title = METRIC_NAMES[verdict.metric]
    zone = _zone(verdict)
    picture = draw_intervals(
        bars,
        title=title,
        unit=lambda high: _unit(verdict.metric, high),
        value_text=lambda value: metric_text(verdict.metric, value),
        zone=zone,
    )
    note = f"bars are 95 % intervals{f', shaded: {zone.name}' if zone else ''}"
    return draw_figure(title, picture, data=interval_data("verdict", verdict.metric.value, bars), note=note)


def _zone(verdict: Verdict) -> Zone | None:
    best = verdict.estimate(verdict.metric)
    if best is None:
        return None
    high = best.mean * (1 + verdict.tolerance)
    return Zone(low=best.mean, high=high, name=f"within the tolerance of {verdict.tolerance * 100:g} %")


def _unit(metric: Metric, high: float) -> Unit:
    match metric:
        case Metric.SECONDS | Metric.SECONDS_TO_TARGET:
            return seconds_unit(high)
        case Metric.USD | Metric.USD_TO_TARGET:
            return Unit(size=1, before="$")
        case Metric.INSTANCE_HOURS:
            return Unit(size=1, after=" h")
