"""Why one cell takes less time than another for the same work: the difference by part, and the rest."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import hypot

from traindyno.core.measurement.step_parts import StepParts
from traindyno.core.slowness.step_shares import COMMUNICATION, COMPUTE, DATA, OPTIMIZER, divide_step

START_UP = "start-up"
PARTS = (DATA, COMMUNICATION, OPTIMIZER, COMPUTE, START_UP)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seconds:
    """``half_width`` of the 95 % interval."""

    mean: float
    half_width: float

    def minus(self, other: "Seconds") -> "Seconds":
        return Seconds(mean=self.mean - other.mean, half_width=hypot(self.half_width, other.half_width))

    @property
    def is_found(self) -> bool:
        """Whether it is more than noise, in either direction."""
        return abs(self.mean) > self.half_width


@dataclass(frozen=True, slots=True, kw_only=True)
class CellTime:
    """``seconds`` of the whole work, of which ``start_up`` is paid once; None is unknown."""

    seconds: float | None
    start_up: Seconds | None
    parts: StepParts | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Seconds of the first cell less those of the second, for the same work.

    ``by_part`` has the parts that are known of both.
    """

    seconds: float
    by_part: Mapping[str, Seconds]

    @property
    def found(self) -> dict[str, Seconds]:
        return {name: part for name, part in self.by_part.items() if part.is_found}

    @property
    def rest(self) -> float:
        """What no part that is found explains: other parts, recurring events, interruptions and noise."""
        return self.seconds - sum(part.mean for part in self.found.values())


def explain_difference(first: CellTime, second: CellTime, examples: int) -> Difference | None:
    """None where a time is unknown, or the parts of a step are."""
    steps = [_step_parts(cell, examples) for cell in (first, second)]
    if first.seconds is None or second.seconds is None or not all(steps):
        return None
    one, other = ({**each, **_start_up(cell)} for each, cell in zip(steps, (first, second), strict=True))
    by_part = {name: one[name].minus(other[name]) for name in PARTS if name in one and name in other}
    return Difference(seconds=first.seconds - second.seconds, by_part=by_part)


def _start_up(cell: CellTime) -> dict[str, Seconds]:
    return {} if cell.start_up is None else {START_UP: cell.start_up}


def _step_parts(cell: CellTime, examples: int) -> dict[str, Seconds]:
    """The seconds of all steps, by part; empty for a cell without probes."""
    shares = divide_step(cell.parts)
    if cell.parts is None or shares is None:
        return {}
    steps, step = examples / cell.parts.samples_per_step, cell.parts.step
    return {
        name: Seconds(
            mean=share.value * step.mean * steps,
            half_width=hypot(share.half_width * step.mean, share.value * step.half_width) * steps,
        )
        for name, share in {**shares.parts, COMPUTE: shares.compute}.items()
        if share is not None
    }
