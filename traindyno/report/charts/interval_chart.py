"""Cells one above the other: a dot for the mean, a bar for its interval."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from traindyno.core.statistics.estimates import Estimate, Interval
from traindyno.report.charts.plot import Scale, Unit, at, make_scale, row_label, svg, text, vertical_grid
from traindyno.report.markup import Markup, PlotData, element, join

ROW_HEIGHT, LOW_ROW_HEIGHT = 36, 20
MOST_TALL_ROWS = 30
LABEL_WIDTH = 392
WIDTH = 1040
VALUE_WIDTH = 110
TOP, BOTTOM = 8, 26
WIDEST_MEANS = 2.5


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


def draw_intervals(
    bars: Sequence[Bar],
    *,
    title: str,
    unit: Callable[[float], Unit],
    value_text: Callable[[float], str],
    zone: Zone | None = None,
) -> Markup:
    """An interval that extends far beyond every mean is clipped at the edge, without a cap."""
    row_height = ROW_HEIGHT if len(bars) <= MOST_TALL_ROWS else LOW_ROW_HEIGHT
    height = TOP + row_height * len(bars) + BOTTOM
    low, high = _range(bars)
    scale = make_scale(low, high, begin=LABEL_WIDTH, end=WIDTH - VALUE_WIDTH, unit=unit(high))
    lines = 2 if row_height == ROW_HEIGHT else 1
    rows = (
        _row(bar, scale, TOP + row_height * (index + 0.5), value_text, lines=lines) for index, bar in enumerate(bars)
    )
    described = "; ".join(f"{bar.label}: {value_text(bar.estimate.mean)}" for bar in bars)
    grid = vertical_grid(scale, TOP, height - BOTTOM)
    shade = [] if zone is None else [_shade(zone, scale, height - BOTTOM)]
    return svg(WIDTH, height, *shade, grid, *rows, title=title, description=described)


def interval_data(name: str, quantity: str, bars: Sequence[Bar]) -> PlotData:
    """One row for each bar: its mean and its interval."""
    return PlotData(
        name=name,
        header=("cell", quantity, "low", "high", "trials"),
        rows=[
            (
                bar.label,
                bar.estimate.mean,
                bar.estimate.interval.low if bar.estimate.interval else "",
                bar.estimate.interval.high if bar.estimate.interval else "",
                bar.estimate.count,
            )
            for bar in bars
        ],
    )


def _shade(zone: Zone, scale: Scale, bottom: float) -> Markup:
    begin, end = scale(max(zone.low, scale.low)), scale(min(zone.high, scale.high))
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
    """The range begins at zero, unless the values are so close together that their intervals would be invisible."""
    lows = [bar.estimate.interval.low if bar.estimate.interval else bar.estimate.mean for bar in bars]
    highs = [bar.estimate.interval.high if bar.estimate.interval else bar.estimate.mean for bar in bars]
    low, high = min(lows), min(max(highs), WIDEST_MEANS * max(bar.estimate.mean for bar in bars))
    if low < 0.6 * high:
        return 0.0, high * 1.02
    span = high - low or high * 0.1
    return low - 0.6 * span, high + 0.1 * span


def _row(bar: Bar, scale: Scale, y: float, value_text: Callable[[float], str], *, lines: int) -> Markup:
    emphasis = "best" if bar.is_best else "other"
    return element(
        "g",
        row_label(bar.label, LABEL_WIDTH - 14, y, class_=f"label {emphasis}", lines=lines),
        _whisker(bar.estimate.interval, scale, y, emphasis) if bar.estimate.interval else None,
        element("circle", class_=f"dot {emphasis}", cx=at(scale(bar.estimate.mean)), cy=at(y), r=4.5),
        text(value_text(bar.estimate.mean), WIDTH - VALUE_WIDTH + 14, y + 4, class_=f"value {emphasis}"),
    )


def _whisker(interval: Interval, scale: Scale, y: float, emphasis: str) -> Markup:
    begin, end = max(interval.low, scale.low), min(interval.high, scale.high)
    caps = [edge for edge in (interval.low, interval.high) if scale.low <= edge <= scale.high]
    return join(
        _line(scale(begin), scale(end), y, y, f"interval {emphasis}"),
        *(_line(scale(edge), scale(edge), y - 5, y + 5, f"interval {emphasis}") for edge in caps),
    )


def _line(x1: float, x2: float, y1: float, y2: float, class_: str) -> Markup:
    return element("line", class_=class_, x1=at(x1), x2=at(x2), y1=at(y1), y2=at(y2))
