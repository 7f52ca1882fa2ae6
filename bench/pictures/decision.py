"""Which claim follows from where the interval of a difference is."""

from collections.abc import Iterator
from dataclasses import dataclass

from bench.pictures.canvas import ACCENT, INK, SOFT, WASH, band, dot, line, page, scale, text

WIDTH = 760
ROW = 44
LEFT = 310
RIGHT = 30
TOP = 40
WIDEST_PERCENT = 5.8
TOLERANCE_PERCENT = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A difference of another cell from the best with its interval, in percent; positive is
    worse.
    """

    low: float
    mean: float
    high: float
    claim: str


EXAMPLES = (
    Example(low=1.5, mean=3.5, high=5.5, claim="beaten: use the best"),
    Example(low=-1.2, mean=0.2, high=1.6, claim="equivalent: within the tolerance"),
    Example(low=-1.0, mean=1.2, high=3.4, claim="not better by more than 2 %"),
    Example(low=-3.0, mean=0.8, high=4.6, claim="open: more trials can decide"),
)


def draw() -> str:
    height = TOP + ROW * len(EXAMPLES) + 36
    return page(
        WIDTH, height, "Which claim follows from the interval of a difference", _parts(height)
    )


def _parts(height: int) -> Iterator[str]:
    across = scale(-WIDEST_PERCENT, WIDEST_PERCENT, LEFT, WIDTH - RIGHT)
    zero = across(0)
    bottom = height - 36
    yield band(across(-TOLERANCE_PERCENT), across(TOLERANCE_PERCENT), TOP - 14, bottom, color=WASH)
    yield text(
        f"zone of indifference, ± {TOLERANCE_PERCENT} %", zero, 18, color=ACCENT, anchor="middle"
    )
    yield line([(zero, TOP - 14), (zero, bottom)], color=SOFT)
    for index, example in enumerate(EXAMPLES):
        y = TOP + ROW * (index + 0.5)
        yield text(example.claim, 14, y + 5, color=INK)
        yield line([(across(example.low), y), (across(example.high), y)], color=ACCENT, width=3)
        yield dot(across(example.mean), y, color=ACCENT, radius=5)
    yield text(
        "the other cell is better ←  0  → the other cell is worse",
        zero,
        height - 12,
        color=SOFT,
        anchor="middle",
    )
