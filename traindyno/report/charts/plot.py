"""The parts that all charts share: scales, ticks, grid lines and an accessible title."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, log10

from traindyno.report.markup import Markup, element, join

SERIES_COLORS = 8
LABEL_LINE_HEIGHT = 14
MOST_LABEL_LETTERS = 44
MOST_LETTERS_ALONE = 46  # a label on one line has at most so many
LEAST_WORD_LETTERS = 3  # a word is not shortened further


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """The unit of an axis: its ``size`` in the plain unit, and the text before and after the
    number.
    """

    size: float
    before: str = ""
    after: str = ""


SECOND_UNITS = (
    Unit(size=86_400, after=" d"),
    Unit(size=3600, after=" h"),
    Unit(size=60, after=" min"),
    Unit(size=1, after=" s"),
    Unit(size=1e-3, after=" ms"),
    Unit(size=1e-6, after=" µs"),
)


def seconds_unit(longest: float) -> Unit:
    """The largest unit of which ``longest`` is at least two."""
    return next((unit for unit in SECOND_UNITS if longest >= 2 * unit.size), SECOND_UNITS[-1])


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """A linear map from values to positions in the picture."""

    low: float
    high: float
    begin: float
    end: float
    unit: Unit

    def __call__(self, value: float) -> float:
        return self.begin + (value - self.low) / (self.high - self.low) * (self.end - self.begin)

    def ticks(self, count: int = 5) -> list[float]:
        """Round values within the range, about ``count`` of them."""
        step = self._step(count)
        first = ceil(self.low / step - 1e-9)
        last = floor(self.high / step + 1e-9)
        return [step * index for index in range(first, last + 1)]

    def label(self, tick: float, count: int = 5) -> str:
        """The tick's text, with as many decimals as the ticks' distance needs."""
        step = self._step(count) / self.unit.size
        decimals = next(
            decimals for decimals in range(16) if abs(round(step, decimals) - step) < 1e-6 * step
        )
        return f"{self.unit.before}{tick / self.unit.size:,.{decimals}f}{self.unit.after}"

    def _step(self, count: int) -> float:
        rough = (self.high - self.low) / self.unit.size / count
        power = 10.0 ** floor(log10(rough))
        factor = next(
            factor for factor in (1, 2, 2.5, 5, 10) if rough <= factor * power * (1 + 1e-9)
        )
        return factor * power * self.unit.size


def make_scale(
    low: float, high: float, *, begin: float, end: float, unit: Unit | None = None
) -> Scale:
    """The range is never empty, so that a single value can be drawn."""
    if high <= low:
        high = low + (abs(low) or 1.0)
    return Scale(low=low, high=high, begin=begin, end=end, unit=unit or Unit(size=1))


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


def vertical_grid(scale: Scale, top: float, bottom: float) -> Markup:
    """Grid lines with their labels below."""
    return join(
        *(
            join(
                element(
                    "line",
                    class_="grid",
                    x1=at(scale(tick)),
                    x2=at(scale(tick)),
                    y1=at(top),
                    y2=at(bottom),
                ),
                text(scale.label(tick), scale(tick), bottom + 14, class_="tick", anchor="middle"),
            )
            for tick in scale.ticks()
        )
    )


def horizontal_grid(scale: Scale, left: float, right: float, count: int = 4) -> Markup:
    """Grid lines with their labels to the left."""
    return join(
        *(
            join(
                element(
                    "line",
                    class_="grid",
                    x1=at(left),
                    x2=at(right),
                    y1=at(scale(tick)),
                    y2=at(scale(tick)),
                ),
                text(
                    scale.label(tick, count),
                    left - 6,
                    scale(tick) + 3.5,
                    class_="tick",
                    anchor="end",
                ),
            )
            for tick in scale.ticks(count)
        )
    )


def text(content: str, x: float, y: float, *, class_: str, anchor: str = "start") -> Markup:
    return element("text", content, x=at(x), y=at(y), class_=class_, text_anchor=anchor)


def polyline(points: Sequence[tuple[float, float]], *, class_: str) -> Markup:
    return element("path", d="M" + "L".join(f"{at(x)} {at(y)}" for x, y in points), class_=class_)


def row_label(label: str, x: float, middle: float, *, class_: str, lines: int = 2) -> Markup:
    """A row's name to the left of ``x``; a long name has up to ``lines`` lines."""
    wrapped = _wrap(label) if lines > 1 else [cut(label, MOST_LETTERS_ALONE)]
    first = middle + 4 - (len(wrapped) - 1) * LABEL_LINE_HEIGHT / 2
    return join(
        *(
            text(line, x, first + index * LABEL_LINE_HEIGHT, class_=class_, anchor="end")
            for index, line in enumerate(wrapped)
        )
    )


def _wrap(label: str) -> list[str]:
    """Breaks a long label at the comma or point nearest to its middle; a line that is still too
    long is cut.
    """
    breaks = [index for index, letter in enumerate(label) if letter in ",·"]
    if len(label) <= MOST_LABEL_LETTERS or not breaks:
        return [cut(label)]
    split = min(breaks, key=lambda index: abs(index - len(label) / 2)) + 1
    return [cut(label[:split].rstrip(" ·")), cut(label[split:].strip())]


def cut(line: str, most_letters: int = MOST_LABEL_LETTERS) -> str:
    """The line with its longest words shortened first: names are long and alike in all labels,
    values are short and differ.
    """
    words = line.split(" ")
    while len(" ".join(words)) > most_letters:
        longest = max(range(len(words)), key=lambda index: len(words[index]))
        if len(words[longest]) <= LEAST_WORD_LETTERS:
            return f"{' '.join(words)[: most_letters - 1]}…"
        words[longest] = f"{words[longest].removesuffix('…')[:-1]}…"
    return " ".join(words)


def at(position: float) -> str:
    """One decimal is a tenth of a pixel."""
    return f"{position:.1f}".removesuffix(".0")


def series_class(index: int) -> str:
    return f"series-{index % SERIES_COLORS}"


def legend(names: Sequence[tuple[str, str]]) -> Markup:
    """Pairs of a color class and a name."""
    items = (
        element("li", element("span", class_=f"swatch {color}", aria_hidden="true"), name)
        for color, name in names
    )
    return element("ul", *items, class_="legend")
