"""Stalls: steps, or short runs of steps, that take far longer than the steps around them."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log
from statistics import median

from traindyno.core.statistics.autocorrelation import LEAST_DEVIATION

STALL = "stall"
_DEVIATIONS_PER_MAD = 1.4826  # the ratio for a normal distribution
_NEIGHBOURS = 7  # steps on each side
_STALL_DEVIATIONS = 6.0
_LEAST_STALL = log(1.25)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stall:
    """Steps ``first`` to ``last``. ``seconds`` is what they take beyond the level of the steps around them.

    ``name`` is that of a logged phase, or else "stall".
    """

    first: int
    last: int
    seconds: float
    name: str = STALL


def log_levels(step_seconds: Sequence[float]) -> list[float]:
    """Logarithms of the step times; a step that stalls has the median of its neighbourhood (15 steps) instead.

    A stall is at least 25 % and six robust deviations above or below that median.
    """
    logs = [log(max(seconds, 1e-9)) for seconds in step_seconds]
    typical = [_middle(logs[max(0, index - _NEIGHBOURS) : index + _NEIGHBOURS + 1]) for index in range(len(logs))]
    distances = [abs(value - level) for value, level in zip(logs, typical, strict=True)]
    deviation = max(_DEVIATIONS_PER_MAD * median(distances), LEAST_DEVIATION)
    reach = max(_STALL_DEVIATIONS * deviation, _LEAST_STALL)
    return [
        value if distance <= reach else level for value, level, distance in zip(logs, typical, distances, strict=True)
    ]


def find_stalls(step_seconds: Sequence[float], levels: Sequence[float]) -> tuple[Stall, ...]:
    """Runs of steps that exceed their level; ``levels`` are logarithms and differ from the steps where these stall."""
    found: list[Stall] = []
    for index, (seconds, level) in enumerate(zip(step_seconds, levels, strict=True)):
        excess = seconds - exp(level)
        if excess <= 1e-6 * seconds:
            continue
        previous = found[-1] if found else None
        if previous is not None and index - previous.last <= 1:
            found[-1] = Stall(first=previous.first, last=index, seconds=previous.seconds + excess)
        else:
            found.append(Stall(first=index, last=index, seconds=excess))
    return tuple(found)


def _middle(values: Sequence[float]) -> float:
    return sorted(values)[len(values) // 2]
