"""How a training goes against its projection: what is left, whether it stays inside the interval, and why not."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from statistics import fmean, median
from typing import Any

from traindyno.core.costs.quantity_text import counted, interval_text, seconds_text, share_text, usd_text
from traindyno.core.statistics.estimates import Interval
from traindyno.slices.training.plan import Projected

# A difference of the step time that is told as a cause, and the share of the time in stalls that is.
SLOWER, STALLED = 1.1, 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class StepPace:
    """``step`` is the last one in the log. ``step_seconds`` are from the begin of a step to that of the next, on
    average; ``stalled`` is the share of them beyond the median.
    """

    step: int
    step_seconds: float
    stalled: float


def read_pace(entries: Iterable[Mapping[str, Any]]) -> StepPace | None:
    """Of the last entries of a step log; None below three steps. A script may write what it likes into it."""
    steps: list[tuple[int, float]] = []
    for entry in entries:
        step, begin = entry.get("step"), entry.get("begin")
        if entry.get("kind") == "step" and isinstance(step, int) and isinstance(begin, int | float):
            steps.append((step, begin))
    gaps = [after[1] - before[1] for before, after in pairwise(steps)]
    if len(gaps) < 2:
        return None
    mean = fmean(gaps)
    return StepPace(step=steps[-1][0], step_seconds=mean, stalled=max(0.0, 1 - median(gaps) / mean) if mean else 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """``left_seconds`` from now to the last step; totals include them. ``causes``: why it is beyond its interval."""

    step: int
    steps: int
    left_seconds: float
    total_seconds: float
    total_usd: Decimal | None
    interval: Interval | None
    causes: Sequence[str]

    @property
    def is_inside(self) -> bool:
        return self.interval is None or self.interval.low <= self.total_seconds <= self.interval.high

    def line(self) -> str:
        """``step 120 of 2500; 52 s and $0.02 left; in all 71 s, inside the projected 66 to 81 s``."""
        usd = "" if self.total_usd is None else f", {usd_text(self.total_usd)}"
        text = f"step {self.step} of {self.steps}; about {seconds_text(self.left_seconds)} left; in all "
        text += f"{seconds_text(self.total_seconds)}{usd}"
        if self.interval is None:
            return f"{text}; no interval was projected"
        projected = interval_text(self.interval.low, self.interval.high, seconds_text)
        if self.is_inside:
            return f"{text}, inside the projected {projected}"
        side = "above" if self.total_seconds > self.interval.high else "below"
        why = f": {'; '.join(self.causes)}" if self.causes else ""
        return f"{text}, {side} the projected {projected}{why}"


def forecast(
    pace: StepPace,
    projected: Projected | None,
    *,
    steps: int,
    elapsed_seconds: float,
    spent_usd: Decimal | None,
    usd_per_second: Decimal | None,
    restarts: int,
) -> Forecast:
    """``elapsed_seconds`` and ``spent_usd`` are of all its executions until now, the running job included."""
    left = max(0, steps - pace.step) * pace.step_seconds
    usd = None
    if spent_usd is not None and usd_per_second is not None:
        usd = spent_usd + usd_per_second * Decimal(str(left))
    causes = []
    before = projected.step_seconds if projected else None
    if before is not None and not 1 / SLOWER < pace.step_seconds / before < SLOWER:
        causes.append(f"a step takes {seconds_text(pace.step_seconds)}, projected {seconds_text(before)}")
    if pace.stalled > STALLED:
        causes.append(f"stalls take {share_text(pace.stalled)} of the time")
    if restarts:
        causes.append(f"it was started again {counted(restarts, 'time')}")
    return Forecast(
        step=pace.step,
        steps=steps,
        left_seconds=left,
        total_seconds=elapsed_seconds + left,
        total_usd=usd,
        interval=projected.seconds_interval if projected else None,
        causes=causes,
    )
