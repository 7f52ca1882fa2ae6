"""How many steps a run has: as many as last long enough, or until its mean step time is known well
enough.
"""

from collections.abc import Sequence
from math import ceil
from statistics import fmean, median

from traindyno.core.measurement.steady_window import LEAST_STEADY_SHARE
from traindyno.core.measurement.step_time import measure_step_time
from traindyno.figures.distributions import SIGNIFICANCE
from traindyno.figures.in_job.outpaced import LEAST_STEPS, WARM_UP_STEPS

# After so many steps a run sets its number of steps.
STEPS_TO_TELL = WARM_UP_STEPS + LEAST_STEPS
# A stall that comes once in 100 steps is missing from 400 steps in 2 % of runs; a rarer one cannot
# be seen.
FIRST_LOOK_STEPS = 400
GROWTH = 1.5  # each look waits for the device and for all ranks, so they become rarer


def steps_that_last(seconds: float, step_seconds: Sequence[float]) -> int:
    """Number of steps that last so long, including the warm-up.

    ``step_seconds`` are of counted steps, of which a few may stall.
    """
    return WARM_UP_STEPS + ceil(seconds / max(median(step_seconds), 1e-6))


def is_look_due(steps: int, looks_done: int) -> bool:
    """Looks are taken after 400 steps, 600, 900 and so on."""
    return steps >= FIRST_LOOK_STEPS * GROWTH**looks_done


def is_known_well_enough(
    step_seconds: Sequence[float],
    *,
    relative_half_width: float,
    look: int,
    warmup_steps: int | None = None,
) -> bool:
    """Whether the mean step time is known within the half width, valid however often it is tested.

    ``look`` counts from 1. Look k has an error of 5 % ÷ k(k + 1): these sum to 5 % over any number
    of looks, the last one included (alpha spending, after Lan and DeMets 1983). The interval
    includes stalls and allows for autocorrelation. Step times that drift by more than the half
    width are not known well enough, nor are those that are not steady, or whose latest regime began
    after the first fifth of the run, unless the mean of all steps is the same within half of the
    half width.
    """
    step_time = measure_step_time(step_seconds, warmup_steps=warmup_steps)
    drift = step_time.drift
    half_width = step_time.relative_half_width(confidence=1 - SIGNIFICANCE / (look * (look + 1)))
    if half_width is None or drift is None or half_width > relative_half_width:
        return False
    if abs(drift.change) > relative_half_width and step_time.drift_p < SIGNIFICANCE:
        return False
    steady = step_time.steady_state
    return (
        steady.is_reached and steady.warmup_steps <= LEAST_STEADY_SHARE * len(step_seconds)
    ) or (abs(fmean(step_seconds[1:]) / step_time.seconds - 1) <= relative_half_width / 2)
