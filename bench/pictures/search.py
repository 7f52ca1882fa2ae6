"""How a search drops cells without measuring them: what was measured, and what the model predicts of the others."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import log, log2
from random import Random

from bench.pictures.canvas import ACCENT, FAINT, INK, SOFT, WARM, WASH, Place, band, dot, line, page, scale, text
from traindyno.core.search.screening import screening_size, spread_points
from traindyno.core.search.space import Axis, Space
from traindyno.core.search.survey import LEAST_CHANCE, MeasuredCell, Survey, survey_cells

WIDTH, LEFT, RIGHT, TOP, PANEL, GAP = 900, 62, 24, 44, 250, 62
BATCHES, PRECISIONS = tuple(1 << power for power in range(10)), ("fp32", "bf16")
TOLERANCE, NOISE, COST = 0.02, 0.01, 1.0
HIGHEST = 25.0  # limits of the drawn ratios to the best cell


@dataclass(frozen=True, slots=True, kw_only=True)
class Searched:
    """``order``: the cells as they were measured, one trial each. ``seen``: index of the cell → its trial."""

    space: Space
    order: tuple[int, ...]
    seen: dict[int, MeasuredCell]
    survey: Survey


def draw() -> str:
    height = TOP + 2 * PANEL + GAP + 84
    return page(WIDTH, height, "How a search drops cells without measuring them", _parts(search()))


def search() -> Searched:
    """Twenty cells; one trial in each round after the first, until no cell is likely to be better."""
    space, source = _space(), Random(4)
    order = spread_points(space, screening_size(space), 0)
    seen = {index: _trial(space, index, source) for index in order}
    while True:
        survey = survey_cells(space, seen, [], tolerance=TOLERANCE)
        promising = {
            index: each.gain_per_cost
            for index, each in enumerate(survey.forecasts)
            if index not in seen and each.chance > LEAST_CHANCE
        }
        if not promising:
            return Searched(space=space, order=tuple(order), seen=seen, survey=survey)
        following = max(promising, key=lambda index: promising[index])
        order.append(following)
        seen[following] = _trial(space, following, source)


def _space() -> Space:
    levels = len(BATCHES)
    batch = Axis(name="batch", levels=levels, positions=tuple(index / (levels - 1) for index in range(levels)))
    precision = Axis(name="precision", levels=len(PRECISIONS), positions=None)
    points = tuple((place, kind) for kind in range(len(PRECISIONS)) for place in range(levels))
    return Space(axes=(batch, precision), points=points)


def true_seconds(space: Space, index: int) -> float:
    """The time of the work falls with the batch until the device is busy; then spilled activations raise it."""
    place, kind = space.points[index]
    batch = BATCHES[place]
    return (0.6 if kind else 1.0) * (1 + 6 / batch + max(0.0, log2(batch / 64)) * 0.12)


def _trial(space: Space, index: int, source: Random) -> MeasuredCell:
    return MeasuredCell(value=true_seconds(space, index) * (1 + source.gauss(0, NOISE)), trials=1, cost=COST)


def _parts(found: Searched) -> Iterator[str]:
    for kind, precision in enumerate(PRECISIONS):
        yield from _panel(found, kind, precision, TOP + kind * (PANEL + GAP))
    unmeasured = [each for index, each in enumerate(found.survey.forecasts) if index not in found.seen]
    largest = max(each.chance for each in unmeasured)
    bottom = TOP + 2 * PANEL + GAP
    yield text(
        f"{len(found.order)} of {len(found.space.points)} cells were measured, in the order of the numbers."
        " Lines: 95 % of the model's prediction.",
        LEFT,
        bottom + 50,
    )
    yield text(
        f"Grey: dropped without a measurement. The largest probability that one is better by more than"
        f" {TOLERANCE:.0%} is {largest:.2%}.".replace("%", " %"),
        LEFT,
        bottom + 72,
    )


def _panel(found: Searched, kind: int, precision: str, top: float) -> Iterator[str]:
    across, up = scale(-0.5, len(BATCHES) - 0.5, LEFT, WIDTH - RIGHT), scale(-0.06, log(HIGHEST), top + PANEL, top)
    zone = log(1 + TOLERANCE)
    yield band(LEFT, WIDTH - RIGHT, up(zone), up(-zone), color=WASH)
    yield text(f"{precision}: time of the work ÷ that of the best cell", LEFT, top - 12)
    for ratio in (1, 2, 5, 10, 20):
        yield line([(LEFT, up(log(ratio))), (WIDTH - RIGHT, up(log(ratio)))], color=FAINT, width=1)
        yield text(f"{ratio:g}", LEFT - 8, up(log(ratio)) + 5, color=SOFT, anchor="end")
    for place, batch in enumerate(BATCHES):
        yield text(f"batch {batch}", across(place), top + PANEL + 18, color=SOFT, anchor="middle", size=12)
        index = found.space.points.index((place, kind))
        yield from _cell(found, index, across(place), up)


def _cell(found: Searched, index: int, x: float, up: Place) -> Iterator[str]:
    forecast, best = found.survey.forecasts[index], found.survey.best
    is_measured = index in found.seen
    color = (WARM if index == best else INK) if is_measured else SOFT
    top, bottom = up(log(min(forecast.high, HIGHEST))), up(log(min(forecast.low, HIGHEST)))
    yield line([(x, top), (x, bottom)], color=ACCENT if is_measured else SOFT, width=3)
    yield dot(x, up(log(min(forecast.ratio, HIGHEST))), color=color, radius=4)
    if is_measured:
        yield text(str(found.order.index(index) + 1), x + 8, up(log(forecast.ratio)) - 6, color=color, size=12)
