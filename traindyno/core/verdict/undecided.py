"""What a cell's trials together can't decide about its rate: whether stalls recur, and whether a
drift goes on.

It is a range of factors beside the noise: longer trials narrow it sooner than more of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log, sqrt
from statistics import NormalDist, fmean, stdev

from traindyno.core.measurement.measured_run import MeasuredRun
from traindyno.core.measurement.stalls import are_alike, are_at_one_step, is_one_of
from traindyno.core.measurement.steady_window import Drift
from traindyno.core.measurement.step_time import SingleStall
from traindyno.figures.estimates import NO_RANGE, Range, range_to

# A trend over all trials of a cell counts as a drift at this two-sided level.
DRIFT_P = 0.01
# A drift may go on for so many times what was seen: its time constant may be this many lengths of a
# run.
DRIFT_GOES_ON = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Undecided:
    """What trials leave open of a cell's time per step.

    ``drift`` is the detected change over a run (a logarithm), 0 if there is none.
    ``trend`` is the mean change of the trials, detected or not; None if no trial shows one.
    """

    stalls: Range = NO_RANGE
    drift: float = 0.0
    trend: Drift | None = None

    @property
    def reasons(self) -> tuple[str, ...]:
        found = []
        if not self.stalls.is_empty:
            found.append("no trial shows whether its stalls recur")
        if self.drift:
            found.append(f"its step times drift by {self.drift:+.1%} over a run".replace("%", " %"))
        return tuple(found)

    @property
    def range(self) -> Range:
        return self.stalls.plus(_ahead(self.drift))


def find_undecided(runs: Sequence[MeasuredRun]) -> Undecided:
    projected = [run for run in runs if not run.ended_at_target]
    if not projected:
        return Undecided()
    drifts = [run.drift for run in projected if run.drift]
    trend = None
    if drifts:  # the larger one of its errors: by the trends' own, and by the spread between trials
        errors = [sqrt(sum(each.standard_error**2 for each in drifts)) / len(drifts)]
        if len(drifts) > 1:
            errors.append(stdev([each.change for each in drifts]) / sqrt(len(drifts)))
        trend = Drift(change=fmean([each.change for each in drifts]), standard_error=max(errors))
    return Undecided(stalls=_stalls(projected), drift=_detected(trend), trend=trend)


def range_between(first: Undecided, second: Undecided) -> Range:
    """Range of first ÷ second. Only a detected difference of their drifts counts.

    A trend that is too small to detect in one cell may still be that of the other.
    """
    drift = first.drift - second.drift
    if (first.drift or second.drift) and first.trend is not None and second.trend is not None:
        error = sqrt(first.trend.standard_error**2 + second.trend.standard_error**2)
        drift = _detected(
            Drift(change=first.trend.change - second.trend.change, standard_error=error)
        )
    return first.stalls.plus(second.stalls.inverse()).plus(_ahead(drift))


def _stalls(runs: Sequence[MeasuredRun]) -> Range:
    """Stalls like those that one trial shows to recur are in the mean over all trials as they were
    seen, and so are those that come at any step.
    """
    recurring = [event for run in runs for event in run.recurring]
    single = [run.undecided_stalls for run in runs]
    low = high = 0.0
    for own in single:
        unlike = [
            each for each in own if not any(is_one_of(event, each.seconds) for event in recurring)
        ]
        still_open = [each for each in unlike if not _comes_at_any_step(each, single)]
        share = sum(each.share for each in still_open)
        low += log(1 - share)
        high += log(1 - share + sum(each.share_again for each in still_open))
    return Range(low=low / len(runs), high=max(0.0, high) / len(runs))


def _comes_at_any_step(stall: SingleStall, of_trials: Sequence[Sequence[SingleStall]]) -> bool:
    """Whether several trials show one of about this length at different steps, and others show
    none.

    What happens once in each run, at one step or not, stays undecided.
    """
    alike = [
        [other for other in own if are_alike(stall.seconds, other.seconds)] for own in of_trials
    ]
    steps = [other.step for own in alike for other in own]
    is_in_each = all(alike)
    return not is_in_each and any(not are_at_one_step(stall.step, other) for other in steps)


def _detected(drift: Drift | None) -> float:
    """The change, if it is larger than its error allows."""
    if drift is None:
        return 0.0
    return (
        drift.change
        if abs(drift.change) > NormalDist().inv_cdf(1 - DRIFT_P / 2) * drift.standard_error
        else 0.0
    )


def _ahead(drift: float) -> Range:
    """From the mean of the window, which is half of the change before its end, to where the drift
    may lead.
    """
    return range_to((DRIFT_GOES_ON + 0.5) * drift)
