"""The frame that charts share: scales, ticks, grid lines and an accessible title."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10

from traindyno.report.markup import Markup, element, join

SERIES_COLORS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """A linear map from values to positions in the picture."""

    low: float
    high: float
    begin: float
    end: float

    def __call__(self, value: float) -> float:
        return self.begin + (value - self.low) / (self.high - self.low) * (self.end - self.begin)

    def ticks(self, count: int = 5) -> list[float]:
        """Round values within the range, about ``count`` of them."""
        step = _round_step((self.high - self.low) / count)
        first, last = ceil(self.low / step - 1e-9), floor(self.high / step + 1e-9)
        return [step * index for index in range(first, last + 1)]


def make_scale(low: float, high: float, *, begin: float, end: float) -> Scale:
    """Never of zero width, so that a single value can be drawn."""
    if high <= low:
        high = low + (abs(low) or 1.0)
    return Scale(low=low, high=high, begin=begin, end=end)


def _round_step(rough: float) -> float:
    unit = 10.0 ** floor(log10(rough))
    factor = next(factor for factor in (1, 2, 2.5, 5, 10) if rough <= factor * unit * (1 + 1e-9))
    return factor * unit


def svg(width: int, height: int, *children: Markup, title: str, description: str) -> Markup:
    return element(
        "svg",
        element("title", title),
        element("desc", description),
        *children,
        viewBox=f"0 0 {width} {height}",
        width=width,
        height=height,
        role="img",
        aria_label=f"{title}. {description}",
    )


def vertical_grid(scale: Scale, top: float, bottom: float, label: Callable[[float], str]) -> Markup:
    """Grid lines with their labels below."""
    return join(
        *(
            join(
                element("line", class_="grid", x1=at(scale(tick)), x2=at(scale(tick)), y1=at(top), y2=at(bottom)),
                text(label(tick), scale(tick), bottom + 14, class_="tick", anchor="middle"),
            )
            for tick in scale.ticks()
        )
    )


def horizontal_grid(scale: Scale, left: float, right: float, label: Callable[[float], str], count: int = 4) -> Markup:
    """Grid lines with their labels to the left."""
    return join(
        *(
            join(
                element("line", class_="grid", x1=at(left), x2=at(right), y1=at(scale(tick)), y2=at(scale(tick))),
                text(label(tick), left - 6, scale(tick) + 3.5, class_="tick", anchor="end"),
            )
            for tick in scale.ticks(count)
        )
    )


def text(content: str, x: float, y: float, *, class_: str, anchor: str = "start") -> Markup:
    return element("text", content, x=at(x), y=at(y), class_=class_, text_anchor=anchor)


def polyline(points: Sequence[tuple[float, float]], *, class_: str) -> Markup:
    return element("path", d="M" + "L".join(f"{at(x)} {at(y)}" for x, y in points), class_=class_)


def at(position: float) -> str:
    """One decimal is a tenth of a pixel."""
    return f"{position:.1f}".removesuffix(".0")


def series_class(index: int) -> str:
    return f"series-{index % SERIES_COLORS}"


def legend(names: Sequence[tuple[str, str]]) -> Markup:
    """Pairs of a color class and a name."""
    return element("ul", *_legend_items(names), class_="legend")


def _legend_items(names: Sequence[tuple[str, str]]) -> Iterator[Markup]:
    for color_class, name in names:
        yield element("li", element("span", class_=f"swatch {color_class}", aria_hidden="true"), name)
