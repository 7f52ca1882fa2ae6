"""A finding from trials that ran anywhere: the best cell, by how much, and how sure that is."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from statistics import fmean

from traindyno.figures.distributions import SIGNIFICANCE
from traindyno.figures.estimates import Comparison, Correction, Estimate, Interval
from traindyno.figures.hosts import ANY_HOSTS
from traindyno.figures.model import TrialModel, correlated, fit_model
from traindyno.figures.selection import (
    Relation,
    Rival,
    ToDecide,
    correct_for_selection,
    further_trials,
    only_longer_trials_decide,
    settle,
)
from traindyno.figures.table import CellFacts, FigureColumn, Figures
from traindyno.figures.trials import Trial, independent_count

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
    #: Correlation of successive trials of a cell; None where the order is unknown.
    serial_correlation: float | None
    #: Trials repeat in blocks or on hosts: only further blocks or hosts would decide.
    are_repeated: bool
    #: The unit of the values, where their texts had one.
    unit: str | None = None

    @property
    def best(self) -> JudgedCell:
        return self.cells[0]

    def related(self, *relations: Relation) -> tuple[JudgedCell, ...]:
        return tuple(cell for cell in self.cells if cell.relation in relations)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recommendation:
    """The best cell; ``rivals`` are all others that were compared, the nearest first."""

    best: str
    rivals: tuple[Rival, ...]
    to_decide: ToDecide

    @property
    def comparisons(self) -> list[Comparison]:
        return [rival.comparison for rival in self.rivals]

    def correction(self, cell: str, significance: float) -> Correction:
        """The best cell is corrected for its selection; another one has intervals of this level."""
        selected_among = self.comparisons if cell == self.best else []
        return correct_for_selection(selected_among, significance)


def recommend(
    model: TrialModel,
    cells: Sequence[str],
    column: FigureColumn,
    *,
    tolerance: float,
    significance: float,
    level: float = SIGNIFICANCE,
    count_of: Callable[[Sequence[Trial]], int] = len,
) -> Recommendation | None:
    """The cell with the smallest figure, which all of ``cells`` have; None without cells.

    ``level``: of a suite that is judged once, such as one of the trials that would decide.
    ``count_of``: in what further trials are counted.
    """
    if not cells:
        return None
    known = {cell: model.figures.of(cell, column) for cell in cells}
    confirmed = [cell for cell in cells if known[cell].long_mean is not None]

    def place(cell: str) -> tuple[bool, float]:
        """Cells that long runs confirm come first: they show what trials are too short for."""
        long = known[cell].long_mean
        if long is None or len(confirmed) < 2:
            return True, model.level(cell, column)
        return False, long + known[cell].extra.log_factor

    best, *others = sorted(cells, key=place)
    rivals = settle(
        model.compare_all(best, others, column), tolerance=tolerance, significance=significance
    )
    is_longer = only_longer_trials_decide(rivals, tolerance=tolerance, significance=significance)
    to_decide = ToDecide(longer_trials=is_longer)
    still_open = [rival.cell_id for rival in rivals if rival.relation is Relation.OPEN]
    if still_open and not is_longer:
        most = max(count_of(known[cell].trials) for cell in (best, *still_open))
        independent = replace(model, correlation=0.0, largest_correlation=0.0)
        again = independent.compare_all(best, still_open, column)
        to_decide = further_trials(list(again.values()), most, tolerance, level)
    return Recommendation(best=best, rivals=rivals, to_decide=to_decide)


def judge_trials(
    trials: Mapping[str, Sequence[Trial]],
    *,
    is_rate: bool,
    is_ordered: bool,
    resolution: float,
    tolerance: float,
) -> TrialsFinding:
    """The finding on two cells or more.

    Args:
        trials: by cell, one or more each; their values are above 0.
        is_rate: more is better, such as of samples per second; otherwise less is.
        is_ordered: a cell's trials are in the order in which they ran, so that the correlation of
            successive ones counts.
        resolution: the step in which values are written, such as 1 of whole epochs.
        tolerance: a cell that is worse by no more than this share is as good.
    """
    figures = _figures(trials, is_rate, resolution)
    model = correlated(fit_model(figures), VALUE)
    correlation = model.correlation if is_ordered else None
    if not is_ordered:
        model = replace(model, correlation=0.0)
    recommended = recommend(
        model,
        [*figures.cells],
        VALUE,
        tolerance=tolerance,
        significance=SIGNIFICANCE,
        count_of=independent_count,
    )
    assert recommended is not None, "there are cells"
    correction = recommended.correction(recommended.best, SIGNIFICANCE)
    best = _estimate(model, recommended.best, is_rate, correction)
    others = [
        _beside_best(rival, model, is_rate, recommended.correction(rival.cell_id, SIGNIFICANCE))
        for rival in recommended.rivals
    ]
    return TrialsFinding(
        claim=_claim([rival.relation for rival in recommended.rivals]),
        cells=(JudgedCell(cell=recommended.best, estimate=best), *others),
        to_decide=recommended.to_decide,
        is_rate=is_rate,
        tolerance=tolerance,
        significance=SIGNIFICANCE,
        serial_correlation=correlation,
        are_repeated=any(independent_count(own) < len(own) for own in trials.values()),
    )


def _figures(trials: Mapping[str, Sequence[Trial]], is_rate: bool, resolution: float) -> Figures:
    """A table of one column, of which less is better."""
    columns = {
        cell: tuple(replace(trial, value=1 / trial.value) if is_rate else trial for trial in own)
        for cell, own in trials.items()
    }
    facts = {
        cell: CellFacts(
            hosts=ANY_HOSTS,
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
    return replace(estimate, mean=1 / estimate.mean, interval=_inverse(estimate.interval))


def _beside_best(
    rival: Rival, model: TrialModel, is_rate: bool, correction: Correction
) -> JudgedCell:
    """A rival as it is judged, by its change against the best cell.

    Its comparison is the best cell ÷ this one in cost, which is this one ÷ the best in rate.
    """
    ratio = rival.comparison.ratio
    interval = rival.comparison.interval
    return JudgedCell(
        cell=rival.cell_id,
        estimate=_estimate(model, rival.cell_id, is_rate, correction),
        change=ratio if is_rate else 1 / ratio,
        change_interval=interval if is_rate else _inverse(interval),
        relation=rival.relation,
    )


def _inverse(interval: Interval | None) -> Interval | None:
    if interval is None:
        return None
    return replace(interval, low=1 / interval.high, high=1 / interval.low)
