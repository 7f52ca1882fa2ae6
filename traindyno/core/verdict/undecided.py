"""What a cell's trials together can't decide about its rate: whether stalls recur, and whether a
drift goes on.

It is a range of factors beside the noise: longer trials narrow it sooner than more of them.
"""

from collections.abc import Collection, Sequence
from math import log, sqrt
from statistics import fmean, stdev

from traindyno.core.measurement.measured_run import MeasuredRun
from traindyno.core.measurement.stalls import are_alike, are_at_one_step, is_one_of
from traindyno.core.measurement.step_time import SingleStall
from traindyno.figures.beyond import Drift, Range, Undecided


def find_undecided(runs: Sequence[MeasuredRun], scheduled: Collection[str] = ()) -> Undecided:
    """The range of a cell's time that its runs leave open; phases that are ``scheduled`` recur as
    the suite says.
    """
    projected = [run for run in runs if not run.ended_at_target]
    if not projected:
        return Undecided()
    drifts = [run.drift for run in projected if run.drift]
    trend = None
    if drifts:  # the larger one of its errors: by the trends' own, and by the spread between trials
        errors = [sqrt(sum(drift.standard_error**2 for drift in drifts)) / len(drifts)]
        if len(drifts) > 1:
            errors.append(stdev([drift.change for drift in drifts]) / sqrt(len(drifts)))
        trend = Drift(change=fmean([drift.change for drift in drifts]), standard_error=max(errors))
    drift = trend.detected if trend else 0.0
    return Undecided(stalls=_stalls(projected, scheduled), drift=drift, trend=trend)


def _stalls(runs: Sequence[MeasuredRun], scheduled: Collection[str]) -> Range:
    """Stalls like those that one trial shows to recur are in the mean over all trials as they were
    seen, and so are those that come at any step.
    """
    recurring = [event for run in runs for event in run.recurring]
    single = [
        [stall for stall in run.undecided_stalls if stall.name not in scheduled] for run in runs
    ]
    low = high = 0.0
    for own in single:
        unlike = [
            stall
            for stall in own
            if not any(is_one_of(event, stall.seconds) for event in recurring)
        ]
        still_open = [stall for stall in unlike if not _comes_at_any_step(stall, single)]
        share = sum(stall.share for stall in still_open)
        low += log(1 - share)
        high += log(1 - share + sum(stall.share_again for stall in still_open))
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
