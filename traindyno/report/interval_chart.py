"""Cells one above the other: a dot for the mean, a bar for its interval."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from traindyno.core.statistics import Estimate
from traindyno.report.markup import Markup, element, join
from traindyno.report.plot import Scale, at, make_scale, svg, text, vertical_grid

ROW_HEIGHT = 30
LABEL_WIDTH = 330
WIDTH = 1040
VALUE_WIDTH = 110
TOP, BOTTOM = 8, 26


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    label: str
    estimate: Estimate
    is_best: bool


def draw_intervals(bars: Sequence[Bar], *, title: str, value_text: Callable[[float], str]) -> Markup:
    height = TOP + ROW_HEIGHT * len(bars) + BOTTOM
    lows = [bar.estimate.interval.low if bar.estimate.interval else bar.estimate.mean for bar in bars]
    highs = [bar.estimate.interval.high if bar.estimate.interval else bar.estimate.mean for bar in bars]
    scale = make_scale(*_range(min(lows), max(highs)), begin=LABEL_WIDTH, end=WIDTH - VALUE_WIDTH)
    rows = (_row(bar, scale, TOP + ROW_HEIGHT * (index + 0.5), value_text) for index, bar in enumerate(bars))
    described = "; ".join(f"{bar.label}: {value_text(bar.estimate.mean)}" for bar in bars)
    return svg(
        WIDTH,
        height,
        vertical_grid(scale, TOP, height - BOTTOM, value_text),
        *rows,
        title=title,
        description=described,
    )


def _range(low: float, high: float) -> tuple[float, float]:
    """From nought, unless all values lie so close together that their intervals would vanish."""
    return (
        (0.0, high * 1.02) if low < 0.6 * high else (low - 0.6 * (high - low or high * 0.1), high + 0.1 * (high - low))
    )


def _row(bar: Bar, scale: Scale, y: float, value_text: Callable[[float], str]) -> Markup:
    emphasis = "best" if bar.is_best else "other"
    interval = bar.estimate.interval
    whisker = (
        join(
            element(
                "line",
                class_=f"interval {emphasis}",
                x1=at(scale(interval.low)),
                x2=at(scale(interval.high)),
                y1=at(y),
                y2=at(y),
            ),
            *(
                element(
                    "line",
                    class_=f"interval cap {emphasis}",
                    x1=at(scale(end)),
                    x2=at(scale(end)),
                    y1=at(y - 5),
                    y2=at(y + 5),
                )
                for end in (interval.low, interval.high)
            ),
        )
        if interval
        else None
    )
    return element(
        "g",
        text(_short(bar.label), LABEL_WIDTH - 14, y + 4, class_=f"label {emphasis}", anchor="end"),
        whisker,
        element("circle", class_=f"dot {emphasis}", cx=at(scale(bar.estimate.mean)), cy=at(y), r=4.5),
        text(value_text(bar.estimate.mean), WIDTH - VALUE_WIDTH + 14, y + 4, class_=f"value {emphasis}"),
    )


def _short(label: str, most: int = 52) -> str:
    return label if len(label) <= most else f"{label[: most - 1]}…"
