"""What a cell's trials together can't decide about its rate: whether stalls recur, and whether a drift goes on.

It is a range of factors beside the noise: more trials of the same length would not narrow it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log, sqrt
from statistics import NormalDist, fmean, stdev

from traindyno.core.measurement.measured_run import MeasuredRun
from traindyno.core.measurement.steady_state import Drift
from traindyno.core.statistics.ranges import NO_RANGE, Range, range_to

# A trend over all trials of a cell counts as a drift at this two-sided level.
DRIFT_P = 0.01
# A drift may go on for so many times what was seen: its time constant may be this many lengths of a run.
DRIFT_GOES_ON = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Undecided:
    """Of a cell's time per step. ``drift`` is the detected change over a run (a logarithm), 0 if there is none.

    ``is_unknown``: half of the trials or more did not reach a steady level, and don't say how far they are from it.
    """

    stalls: Range = NO_RANGE
    level: Range = NO_RANGE
    drift: float = 0.0
    is_unknown: bool = False

    @property
    def reasons(self) -> tuple[str, ...]:
        found = []
        if not self.stalls.is_empty:
            found.append("no trial shows whether its stalls recur")
        if self.drift:
            found.append(f"its step times drift by {self.drift:+.1%} over a run".replace("%", " %"))
        if self.is_unknown or not self.level.is_empty:
            found.append("half of its trials or more did not reach a steady state")
        return tuple(found)

    @property
    def range(self) -> Range:
        return self.stalls.plus(self.level).plus(_ahead(self.drift))


def find_undecided(runs: Sequence[MeasuredRun]) -> Undecided:
    projected = [run for run in runs if not run.ended_at_target]
    if not projected:
        return Undecided()
    drift = _detect_drift([run.drift for run in projected if run.drift])
    # Noise alone is in the spread of the trials.
    unsteady = [
        run for run in projected if run.is_unsteady and not run.undecided_stalls and not run.steady_state.is_only_noisy
    ]
    is_level_open = not drift and 2 * len(unsteady) >= len(projected) and bool(unsteady)
    errors = [_level_error(run) for run in unsteady] if is_level_open else []
    known = [error for error in errors if error is not None]
    reach = fmean(known) if known else 0.0
    return Undecided(
        stalls=_stalls(projected),
        level=Range(low=-reach, high=reach),
        drift=drift,
        is_unknown=len(known) < len(errors),
    )


def range_between(first: Undecided, second: Undecided) -> Range:
    """Of the time of the first ÷ that of the second: where both drift, only the difference counts."""
    own = first.stalls.plus(first.level)
    other = second.stalls.plus(second.level).inverse()
    return own.plus(other).plus(_ahead(first.drift - second.drift))


def _stalls(runs: Sequence[MeasuredRun]) -> Range:
    """None if one trial shows that stalls recur: then they are in the mean over all trials as they were seen."""
    if any(run.shows_recurring_stalls for run in runs):
        return NO_RANGE
    seen = [run.undecided_stalls for run in runs if run.undecided_stalls]
    without = sum(log(1 - each.share) for each in seen)
    again = sum(log((1 - each.share) / (1 - each.most_share)) for each in seen)
    return Range(low=without / len(runs), high=max(0.0, again) / len(runs))


def _detect_drift(drifts: Sequence[Drift]) -> float:
    """The mean change, if it is larger than its errors, by the trends' own and by the spread between trials."""
    if not drifts:
        return 0.0
    mean = fmean([each.change for each in drifts])
    errors = [sqrt(sum(each.standard_error**2 for each in drifts)) / len(drifts)]
    if len(drifts) > 1:
        errors.append(stdev([each.change for each in drifts]) / sqrt(len(drifts)))
    return mean if abs(mean) > NormalDist().inv_cdf(1 - DRIFT_P / 2) * max(errors) else 0.0


def _ahead(drift: float) -> Range:
    """From the mean of the window, which is half of the change before its end, to where the drift may lead."""
    return range_to((DRIFT_GOES_ON + 0.5) * drift)


def _level_error(run: MeasuredRun) -> float | None:
    """How far the level of a run that still changes may be off, by what the run itself says.

    Trials may all be off in one direction.
    """
    found = [] if run.drift is None else [(DRIFT_GOES_ON + 0.5) * abs(run.drift.change)]
    found += [] if run.relative_half_width is None else [run.relative_half_width]
    return max(found) if found else None
