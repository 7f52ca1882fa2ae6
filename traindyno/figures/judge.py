"""A finding from trials that ran anywhere: the best cell, by how much, and how sure that is."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from statistics import fmean

from traindyno.figures.distributions import SIGNIFICANCE
from traindyno.figures.estimates import Estimate, Interval
from traindyno.figures.hosts import STATED_PRIOR, HostSpread, Trial
from traindyno.figures.model import TrialModel, correlated, fit_model
from traindyno.figures.selection import Correction, Relation, correct_for_selection
from traindyno.figures.settle import Rival, ToDecide
from traindyno.figures.table import CellFacts, FigureColumn, Figures

VALUE = FigureColumn.VALUE


class TrialsClaim(StrEnum):
    """What the trials show of the best cell."""

    BEST = "best"
    WITHIN_TOLERANCE = "within_tolerance"
    UNDECIDED = "undecided"
    TOO_FEW_TRIALS = "too_few_trials"


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedCell:
    """A cell beside the best one.

    ``change``: its mean ÷ the best one's, in the value's own unit, with the interval of the test
    that decided. Both are None of the best cell itself.
    """

    cell: str
    estimate: Estimate
    change: float | None = None
    change_interval: Interval | None = None
    relation: Relation | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialsFinding:
    """What the trials show. ``cells``: the best first, the others by their means. ``significance``:
    a claim is wrong with this probability at most.
    """

    claim: TrialsClaim
    cells: tuple[JudgedCell, ...]
    to_decide: ToDecide
    is_rate: bool
    tolerance: float
    significance: float
    #: With the trial before it in its cell; None where the order is unknown.
    serial_correlation: float | None
    #: The unit of the values, where their texts had one.
    unit: str | None = None

    @property
    def best(self) -> JudgedCell:
        return self.cells[0]

    def related(self, *relations: Relation) -> tuple[JudgedCell, ...]:
        return tuple(cell for cell in self.cells if cell.relation in relations)


def judge_trials(
    trials: Mapping[str, Sequence[Trial]],
    *,
    is_rate: bool = False,
    is_ordered: bool = False,
    resolution: float = 0.0,
    tolerance: float = 0.02,
    significance: float = SIGNIFICANCE,
    hosts: HostSpread = STATED_PRIOR,
) -> TrialsFinding:
    """The finding on two cells or more.

    Args:
        trials: by cell, one or more each; their values are above 0.
        is_rate: more is better, such as of samples per second; otherwise less is.
        is_ordered: a cell's trials are in the order in which they ran, so that the correlation of
            successive ones counts.
        resolution: the step in which values are written, such as 1 of whole epochs.
        tolerance: a cell that is worse by no more than this share is as good.
        significance: of all that is said together.
        hosts: how far hosts differ, where cells ran on one set of hosts each.
    """
    figures = _figures(trials, is_rate, resolution, hosts)
    model = correlated(fit_model(figures), VALUE)
    correlation = model.correlation if is_ordered else None
    if not is_ordered:
        model = replace(model, correlation=0.0)
    recommended = model.recommend(
        [*figures.cells], VALUE, tolerance=tolerance, significance=significance
    )
    assert recommended is not None, "there are cells"
    of_best = correct_for_selection(recommended.comparisons, significance)
    tail = significance / 2
    of_others = Correction(shift=0.0, upper_tail=tail, lower_tail=tail)
    best = _estimate(model, recommended.best, is_rate, of_best)
    others = [
        _beside_best(rival, _estimate(model, rival.cell_id, is_rate, of_others), is_rate)
        for rival in recommended.rivals
    ]
    return TrialsFinding(
        claim=_claim([rival.relation for rival in recommended.rivals]),
        cells=(JudgedCell(cell=recommended.best, estimate=best), *others),
        to_decide=recommended.to_decide,
        is_rate=is_rate,
        tolerance=tolerance,
        significance=significance,
        serial_correlation=correlation,
    )


def _figures(
    trials: Mapping[str, Sequence[Trial]], is_rate: bool, resolution: float, hosts: HostSpread
) -> Figures:
    """A table of one column, of which less is better."""
    columns = {
        cell: tuple(replace(trial, value=1 / trial.value) if is_rate else trial for trial in own)
        for cell, own in trials.items()
    }
    facts = {
        cell: CellFacts(
            hosts=hosts,
            least_variances={VALUE: _least_variance(own, resolution)},
            least_degrees=None,
        )
        for cell, own in trials.items()
    }
    return Figures(cells=facts, columns={VALUE: columns})


def _least_variance(trials: Sequence[Trial], resolution: float) -> float:
    mean = fmean([trial.value for trial in trials])
    return (resolution / mean) ** 2 / 4 / len(trials)


def _claim(relations: Sequence[Relation]) -> TrialsClaim:
    if Relation.UNKNOWN in relations:
        return TrialsClaim.TOO_FEW_TRIALS
    if Relation.OPEN in relations:
        return TrialsClaim.UNDECIDED
    are_beaten = all(relation is Relation.BEATEN for relation in relations)
    return TrialsClaim.BEST if are_beaten else TrialsClaim.WITHIN_TOLERANCE


def _estimate(model: TrialModel, cell: str, is_rate: bool, correction: Correction) -> Estimate:
    estimate = model.estimate(cell, VALUE, correction)
    assert estimate is not None, "each cell has a trial"
    if not is_rate:
        return estimate
    interval = estimate.interval
    return replace(
        estimate, mean=1 / estimate.mean, interval=None if interval is None else _inverse(interval)
    )


def _beside_best(rival: Rival, estimate: Estimate, is_rate: bool) -> JudgedCell:
    """A rival as it is judged, by its change against the best cell.

    Its comparison is the best cell ÷ this one in cost, which is this one ÷ the best in rate.
    """
    ratio = rival.comparison.ratio
    interval = rival.comparison.interval
    if not is_rate:
        ratio = 1 / ratio
        interval = None if interval is None else _inverse(interval)
    return JudgedCell(
        cell=rival.cell_id,
        estimate=estimate,
        change=ratio,
        change_interval=interval,
        relation=rival.relation,
    )


def _inverse(interval: Interval) -> Interval:
    return replace(interval, low=1 / interval.high, high=1 / interval.low)
