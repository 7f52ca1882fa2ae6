"""How a training goes against its projection: the time and cost left, and whether it stays inside
the interval.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean
from typing import Any

from traindyno.core.costs.projected_actual import ProjectedActual
from traindyno.core.costs.quantity_text import seconds_text, usd_text
from traindyno.core.jobs.run_end import number_of, whole_of
from traindyno.slices.training.plan import Projected, total
from traindyno.slices.training.report import compared_time_and_cost

# No job is longer than 28 days.
LONGEST_STEP_SECONDS = 28 * 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class StepPace:
    """Pace of a training's steps.

    ``step`` is the last one in the log. ``step_seconds`` are from the begin of a step to the begin
    of the next one, on average.
    """

    step: int
    step_seconds: float


def read_pace(entries: Iterable[Mapping[str, Any]]) -> StepPace | None:
    """The pace by the last entries of a step log; None below three steps.

    A script may write anything into the log. Steps between which the clock was set are left out.
    """
    steps: list[tuple[int, float]] = []
    for line in entries:
        step = whole_of(line.get("step"))
        begin = number_of(line.get("begin"))
        if line.get("kind") == "step" and step is not None and begin is not None and step >= 0:
            steps.append((step, begin))
    gaps = [
        after[1] - before[1]
        for before, after in pairwise(steps)
        if 0 <= after[1] - before[1] <= LONGEST_STEP_SECONDS
    ]
    if len(gaps) < 2:
        return None
    return StepPace(step=steps[-1][0], step_seconds=fmean(gaps))


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """Time and cost left, from now to the last step; ``time`` and ``cost`` include them."""

    step: int
    steps: int
    left_seconds: float
    left_usd: float
    time: ProjectedActual
    cost: ProjectedActual

    @property
    def is_inside(self) -> bool:
        return not {"above", "below"} & {self.time.side, self.cost.side}

    def line(self) -> str:
        """The forecast as text: ``step 120 of 2500; about 52.0 s, $0.02 left; in all 71.0 s, inside
        the projected 70 s (66 to 81 s)``.
        """
        left = f"{seconds_text(self.left_seconds)}, {usd_text(self.left_usd)}"
        sums = []
        for figure in (self.time, self.cost):
            if figure.actual is None:
                continue
            _, projected, actual, *_ = figure.texts()
            sums.append(
                f"{actual}, {figure.side} the projected {projected}" if figure.side else actual
            )
        if not self.time.side:
            sums.append("no interval was projected")
        return f"step {self.step} of {self.steps}; about {left} left; in all {'; '.join(sums)}"


def forecast(
    pace: StepPace,
    projected: Projected | None,
    *,
    steps: int,
    elapsed_seconds: float | None,
    spent_usd: float | None,
    usd_per_second: float,
) -> Forecast:
    """Compare a training's pace with its projection.

    Args:
        pace: Pace of its last steps.
        projected: What the verdict projected, or None.
        steps: Steps of the whole training.
        elapsed_seconds: Time of all its jobs until now, the running one too; None is unknown.
        spent_usd: Cost of the same jobs; None is unknown.
        usd_per_second: Price of the running job.
    """
    left = max(0, steps - pace.step) * pace.step_seconds
    left_usd = usd_per_second * left
    seconds = total(elapsed_seconds, left)
    usd = total(spent_usd, left_usd)
    time, cost = compared_time_and_cost(projected or Projected(), seconds, usd)
    return Forecast(
        step=pace.step,
        steps=steps,
        left_seconds=left,
        left_usd=left_usd,
        time=time,
        cost=cost,
    )
