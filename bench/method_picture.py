"""Draws docs/method-decision.svg: which claim follows from where the interval of a difference lies."""

from dataclasses import dataclass
from pathlib import Path

PICTURE = Path("docs/method-decision.svg")
WIDTH, ROW, LEFT, TOP = 760, 44, 330, 40
PIXELS_PER_PERCENT = 40
ZERO = LEFT + 4 * PIXELS_PER_PERCENT
TOLERANCE_PERCENT = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A difference of another cell from the best with its interval, in percent; positive is worse."""

    low: float
    mean: float
    high: float
    claim: str


EXAMPLES = (
    Example(low=1.5, mean=3.5, high=5.5, claim="beaten: use the best"),
    Example(low=-1.2, mean=0.2, high=1.6, claim="equivalent: within the tolerance"),
    Example(low=-1.0, mean=1.2, high=3.4, claim="not better by more than 2 %"),
    Example(low=-3.0, mean=0.8, high=4.6, claim="open: more trials would tell"),
)


def draw() -> str:
    height = TOP + ROW * len(EXAMPLES) + 36
    begin, end = _x(-TOLERANCE_PERCENT), _x(TOLERANCE_PERCENT)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" font-family="sans-serif"'
        ' font-size="14">',
        "<title>Which claim follows from the interval of a difference</title>",
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        f'<rect x="{begin}" y="{TOP - 14}" width="{end - begin}" height="{ROW * len(EXAMPLES) + 14}" fill="#e6f2f1"/>',
        f'<text x="{ZERO}" y="18" text-anchor="middle" fill="#0b6e6e">zone of indifference, ± 2 %</text>',
        f'<line x1="{ZERO}" x2="{ZERO}" y1="{TOP - 14}" y2="{height - 36}" stroke="#5b6472"/>',
        *(_example(example, TOP + ROW * (index + 0.5)) for index, example in enumerate(EXAMPLES)),
        f'<text x="{ZERO}" y="{height - 12}" text-anchor="middle" fill="#5b6472">the other cell is better ←  0  →'
        " the other cell is worse</text>",
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _example(example: Example, y: float) -> str:
    return (
        f'<text x="14" y="{y + 5}" fill="#1b1f27">{example.claim}</text>'
        f'<line x1="{_x(example.low)}" x2="{_x(example.high)}" y1="{y}" y2="{y}" stroke="#0b6e6e" stroke-width="3"/>'
        f'<circle cx="{_x(example.mean)}" cy="{y}" r="5" fill="#0b6e6e"/>'
    )


def _x(percent: float) -> float:
    return ZERO + percent * PIXELS_PER_PERCENT


if __name__ == "__main__":
    PICTURE.write_text(draw(), encoding="utf-8")
