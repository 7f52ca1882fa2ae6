"""Why one cell takes less time than another for the same work: the difference by part, and what no part explains."""

from collections.abc import Mapping
from dataclasses import dataclass

from traindyno.core.measurement.step_parts import StepParts

DATA, COMMUNICATION, OPTIMIZER, COMPUTE, START_UP = "data", "communication", "optimizer", "compute", "start-up"
STEP_PARTS = (DATA, COMMUNICATION, OPTIMIZER, COMPUTE)


@dataclass(frozen=True, slots=True, kw_only=True)
class CellTime:
    """``seconds`` of the whole work, of which ``start_up_seconds`` are paid once; None is unknown."""

    seconds: float | None
    start_up_seconds: float | None
    parts: StepParts | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Seconds of the first cell less those of the second, for the same work.

    ``by_part`` has the parts that are known of both. ``unexplained`` is the rest: unknown parts, recurring events,
    interruptions and noise.
    """

    seconds: float
    by_part: Mapping[str, float]

    @property
    def unexplained(self) -> float:
        return self.seconds - sum(self.by_part.values())


def explain_difference(first: CellTime, second: CellTime, examples: int) -> Difference | None:
    """None where a time is unknown."""
    if first.seconds is None or second.seconds is None:
        return None
    of_first, of_second = _seconds_by_part(first, examples), _seconds_by_part(second, examples)
    by_part = {name: of_first[name] - of_second[name] for name in of_first if name in of_second}
    return Difference(seconds=first.seconds - second.seconds, by_part=by_part)


def _seconds_by_part(cell: CellTime, examples: int) -> dict[str, float]:
    start_up = {} if cell.start_up_seconds is None else {START_UP: cell.start_up_seconds}
    if cell.parts is None:
        return start_up
    steps = examples / cell.parts.samples_per_step
    values = (cell.parts.data, cell.parts.communication, cell.parts.optimizer, cell.parts.compute)
    known = {name: part.mean * steps for name, part in zip(STEP_PARTS, values, strict=True) if part is not None}
    return {**known, **start_up}
