"""How many interruptions and own failures one future run may have, and how much longer each number makes it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import exp, log, sqrt
from statistics import fmean

from traindyno.core.costs.hazard import PRIOR_HOURS, Hazard
from traindyno.core.costs.interruptions import Exposure
from traindyno.core.statistics.student_t import incomplete_beta

_MOST_FAILURES = 40
_GROUP = 4  # from here on, numbers that differ by a quarter count as one
_NEGLIGIBLE = 1e-4  # a probability, of the 5 % beyond each end of the interval


@dataclass(frozen=True, slots=True, kw_only=True)
class Incidents:
    """``parts``: a probability, the factor of a run with that number of incidents, and its own relative deviation.

    ``mean_factor`` is the one that the cell's figure has.
    """

    mean_factor: float
    parts: tuple[tuple[float, float, float], ...]


def expect_incidents(
    exposures: Sequence[Exposure], hazard: Hazard | None, success: float, *, is_wall: bool
) -> Incidents | None:
    """``success``: the share of attempts that the cell itself does not make fail. None if a run would hardly ever end.

    An interruption costs up to twice its mean, with equal probability: the place between two checkpoints is random.
    """
    delays = [None if hazard is None else each.delay(hazard) for each in exposures]
    if hazard is not None and None in delays:
        return None
    logs, each_costs, numbers = [], [], []
    for exposure, delay in zip(exposures, delays, strict=True):
        if delay is None or not delay.interruptions:
            continue
        factor = exposure.wall_factor(delay) if is_wall else exposure.training_factor(delay)
        logs.append(log(factor))
        each_costs.append((factor - 1) / delay.interruptions)
        numbers.append(delay.interruptions)
    cost = fmean(each_costs) if each_costs else 0.0
    expected = fmean(numbers) if numbers else 0.0
    parts = [
        (weight * share, failed + 1 + count * cost, cost * sqrt(count / 3) / (failed + 1 + count * cost))
        for failed, weight in _failures(success)
        for count, share in _interruptions(expected, hazard)
        if weight * share > _NEGLIGIBLE
    ]
    total = sum(weight for weight, _, _ in parts)
    return Incidents(
        mean_factor=exp(fmean(logs) if logs else 0.0) / success,
        parts=tuple((weight / total, factor, deviation) for weight, factor, deviation in parts),
    )


def _failures(success: float) -> Iterator[tuple[int, float]]:
    """Failed attempts before the one that succeeds, each of which takes a whole run: geometric."""
    weight, count = success, 0
    while weight > _NEGLIGIBLE and count < _MOST_FAILURES:
        yield count, weight
        weight, count = weight * (1 - success), count + 1


def _interruptions(expected: float, hazard: Hazard | None) -> Iterator[tuple[float, float]]:
    """Their number is negative binomial: a Poisson number at a rate that is gamma. Many are taken in groups."""
    if hazard is None or expected <= 0:
        yield 0.0, 1.0
        return
    shape, hours = hazard.shape, hazard.hours + PRIOR_HOURS
    exposed = expected / hazard.per_instance_hour
    share = hours / (hours + exposed)
    first, below = 0, 0.0
    while 1 - below > _NEGLIGIBLE and first < 2**20:
        width = 1 + first // _GROUP
        up_to = incomplete_beta(shape, first + width, share)
        yield first + (width - 1) / 2, up_to - below
        first, below = first + width, up_to
