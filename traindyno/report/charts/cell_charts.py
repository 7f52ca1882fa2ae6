"""Charts with a bar for each cell: the goal's metric, with the zone of indifference, its rate, and
its billed time.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from traindyno.core.costs.quantity_text import number_text, seconds_text, usd_text
from traindyno.core.verdict.cell_row import CellRow
from traindyno.core.verdict.verdict import Verdict
from traindyno.figures.estimates import Estimate, Interval
from traindyno.figures.table import FigureColumn
from traindyno.report.charts.figure import draw_figure
from traindyno.report.charts.plot import (
    Scale,
    Unit,
    at,
    make_scale,
    row_label,
    seconds_unit,
    svg,
    text,
    vertical_grid,
)
from traindyno.report.markup import Markup, PlotData, element, join

ROW_HEIGHT = 36
LOW_ROW_HEIGHT = 20
MOST_TALL_ROWS = 30
LABEL_WIDTH = 392
WIDTH = 1040
VALUE_WIDTH = 110
TOP = 8
BOTTOM = 26
WIDEST_MEANS = 2.5
METRIC_NAMES = {
    FigureColumn.SECONDS: "Whole workload, time",
    FigureColumn.USD: "Whole workload, cost",
    FigureColumn.INSTANCE_HOURS: "Whole workload, instance hours",
    FigureColumn.SECONDS_TO_TARGET: "Time until the target is reached",
    FigureColumn.USD_TO_TARGET: "Cost until the target is reached",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    label: str
    estimate: Estimate
    is_best: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Zone:
    """A shaded range of values, with what it means."""

    low: float
    high: float
    name: str


def _data(name: str, quantity: str, bars: Sequence[Bar]) -> PlotData:
    """One row for each bar: its mean and its interval."""
    ends = [
        (bar.estimate.interval.low, bar.estimate.interval.high)
        if bar.estimate.interval
        else ("", "")
        for bar in bars
    ]
    return PlotData(
        name=name,
        header=("cell", quantity, "low", "high", "trials"),
        rows=[
            (bar.label, bar.estimate.mean, *end, bar.estimate.count)
            for bar, end in zip(bars, ends, strict=True)
        ],
    )


def _shade(zone: Zone, scale: Scale, bottom: float) -> Markup:
    begin = scale(max(zone.low, scale.low))
    end = scale(min(zone.high, scale.high))
    return element(
        "rect",
        element("title", zone.name),
        class_="zone",
        x=at(begin),
        y=at(TOP),
        width=at(max(0.0, end - begin)),
        height=at(bottom - TOP),
    )


def _range(bars: Sequence[Bar]) -> tuple[float, float]:
    """The range begins at zero, unless the values are so close together that their intervals would
    be invisible.
    """
    lows = [
        bar.estimate.interval.low if bar.estimate.interval else bar.estimate.mean for bar in bars
    ]
    highs = [
        bar.estimate.interval.high if bar.estimate.interval else bar.estimate.mean for bar in bars
    ]
    low = min(lows)
    high = min(max(highs), WIDEST_MEANS * max(bar.estimate.mean for bar in bars))
    if low < 0.6 * high:
        return 0.0, high * 1.02
    span = high - low or high * 0.1
    return low - 0.6 * span, high + 0.1 * span


def _row(
    bar: Bar, scale: Scale, y: float, value_text: Callable[[float], str], *, lines: int
) -> Markup:
    emphasis = "best" if bar.is_best else "other"
    return element(
        "g",
        row_label(bar.label, LABEL_WIDTH - 14, y, class_=f"label {emphasis}", lines=lines),
        _whisker(bar.estimate.interval, scale, y, emphasis) if bar.estimate.interval else None,
        element(
            "circle", class_=f"dot {emphasis}", cx=at(scale(bar.estimate.mean)), cy=at(y), r=4.5
        ),
        text(
            value_text(bar.estimate.mean),
            WIDTH - VALUE_WIDTH + 14,
            y + 4,
            class_=f"value {emphasis}",
        ),
    )


def _whisker(interval: Interval, scale: Scale, y: float, emphasis: str) -> Markup:
    begin = max(interval.low, scale.low)
    end = min(interval.high, scale.high)
    caps = [edge for edge in (interval.low, interval.high) if scale.low <= edge <= scale.high]
    return join(
        _line(scale(begin), scale(end), y, y, f"interval {emphasis}"),
        *(_line(scale(edge), scale(edge), y - 5, y + 5, f"interval {emphasis}") for edge in caps),
    )


def _line(x1: float, x2: float, y1: float, y2: float, class_: str) -> Markup:
    return element("line", class_=class_, x1=at(x1), x2=at(x2), y1=at(y1), y2=at(y2))


def metric_text(metric: FigureColumn, value: float | None) -> str:
    if metric.is_time:
        return seconds_text(value)
    return usd_text(value) if metric.is_money else f"{number_text(value)} instance hours"


def draw_verdict_chart(verdict: Verdict) -> Markup | None:
    """None where no cell knows the metric."""
    metric = verdict.metric
    best = verdict.estimate(verdict.metric)
    name = f"within the tolerance of {verdict.tolerance * 100:g} %"
    return _draw(
        verdict,
        METRIC_NAMES[metric],
        ("verdict", metric.value),
        lambda row: row.estimate(metric),
        unit=seconds_unit
        if metric.is_time
        else lambda _: Unit(size=1, before="$" if metric.is_money else ""),
        value_text=lambda value: metric_text(metric, value),
        zone=Zone(low=best.mean, high=best.mean * (1 + verdict.tolerance), name=name)
        if best
        else None,
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
    """Bar chart of one quantity of all cells.

    An interval that extends far beyond every mean is clipped at the edge, without a cap.

    Args:
        data: Name of the file with the numbers, and the quantity's name.
        of: Quantity of a row.
        unit: Unit for the largest value.
        value_text: Text of a value.
    """
    bars = [
        Bar(label=row.label, estimate=estimate, is_best=row.cell_id == verdict.recommended)
        for row in verdict.ranked_rows
        if (estimate := of(row))
    ]
    if not bars:
        return None
    row_height, lines = (ROW_HEIGHT, 2) if len(bars) <= MOST_TALL_ROWS else (LOW_ROW_HEIGHT, 1)
    height = TOP + row_height * len(bars) + BOTTOM
    low, high = _range(bars)
    scale = make_scale(low, high, begin=LABEL_WIDTH, end=WIDTH - VALUE_WIDTH, unit=unit(high))
    picture = svg(
        WIDTH,
        height,
        *([] if zone is None else [_shade(zone, scale, height - BOTTOM)]),
        vertical_grid(scale, TOP, height - BOTTOM),
        *(
            _row(bar, scale, TOP + row_height * (index + 0.5), value_text, lines=lines)
            for index, bar in enumerate(bars)
        ),
        title=title,
        description="; ".join(f"{bar.label}: {value_text(bar.estimate.mean)}" for bar in bars),
    )
    level = f"{100 * (1 - verdict.significance):.4g} %"
    note = f"bars are {level} intervals, shaded: {zone.name}" if zone else None
    return draw_figure(title, picture, data=_data(*data, bars), note=note)
