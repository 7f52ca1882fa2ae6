"""An interval as a line of characters, on a scale that all rows of a table share."""

from collections.abc import Sequence

from traindyno.core.measurement.statistics import Estimate

WIDTH = 24
WIDEST_MEANS = 2.5


def interval_bars(estimates: Sequence[Estimate | None], *, tolerance: float) -> list[str]:
    """One text for each estimate, the first one's mean and its zone of ``tolerance`` marked in all of them.

    ``├─●─┤`` is the interval with its mean; ``:`` is the upper end of the zone of the first estimate.
    """
    known = [each for each in estimates if each is not None]
    if not known:
        return ["" for _ in estimates]
    high = min(max(_high(each) for each in known), WIDEST_MEANS * max(each.mean for each in known))
    low = min(_low(each) for each in known)
    low = 0.0 if low < 0.5 * high else low - 0.05 * (high - low)
    span = (high - low) or 1.0

    def place(value: float) -> int:
        return max(0, min(WIDTH - 1, round((value - low) / span * (WIDTH - 1))))

    edge = place(known[0].mean * (1 + tolerance))

    def bar(each: Estimate) -> str:
        return _bar(place(_low(each)), place(each.mean), place(_high(each)), edge)

    return ["" if each is None else bar(each) for each in estimates]


def _bar(low: int, mean: int, high: int, edge: int) -> str:
    letters = [" "] * WIDTH
    letters[edge] = ":"
    for index in range(low, high + 1):
        letters[index] = "─"
    if low < high:
        letters[low], letters[high] = "├", "┤"
    letters[mean] = "●"
    return "".join(letters)


def _low(estimate: Estimate) -> float:
    return estimate.interval.low if estimate.interval else estimate.mean


def _high(estimate: Estimate) -> float:
    return estimate.interval.high if estimate.interval else estimate.mean
