"""A finding from trials that ran anywhere: the best cell, by how much, and how sure that is."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from statistics import fmean

from traindyno.figures.autocorrelation import serial_correlation, variance_inflation
from traindyno.figures.blocks import Pool, residuals
from traindyno.figures.cell_means import cell_means
from traindyno.figures.distributions import SIGNIFICANCE
from traindyno.figures.estimates import (
    Comparison,
    Estimate,
    Interval,
    estimate_of_mean,
)
from traindyno.figures.hosts import (
    STATED_PRIOR,
    HostSpread,
    Trial,
    blocks_of,
    compare_on_hosts,
    mean_over_hosts,
    pool_of,
)
from traindyno.figures.selection import Relation, correct_for_selection
from traindyno.figures.settle import Rival, ToDecide, settle


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
    #: Of the values, where their texts had one.
    unit: str | None = None

    @property
    def best(self) -> JudgedCell:
        return self.cells[0]

    def related(self, *relations: Relation) -> tuple[JudgedCell, ...]:
        return tuple(cell for cell in self.cells if cell.relation in relations)


@dataclass(frozen=True, slots=True)
class _Model:
    """All trials, of a quantity of which less is better."""

    trials: Mapping[str, Sequence[Trial]]
    means: Mapping[str, float]
    hosts: HostSpread
    correlation: float
    #: Of the logarithm of each mean: values in whole steps hide a scatter of half a step.
    least_variances: Mapping[str, float]

    def inflation(self, cell: str) -> float:
        if not self.correlation:
            return 1.0
        return variance_inflation(self.correlation, len(self.trials[cell]))

    def compare(self, first: str, second: str, pool: Pool) -> Comparison:
        comparison = compare_on_hosts(
            self.trials[first],
            self.trials[second],
            pool=pool,
            spreads=(self.hosts, self.hosts),
            inflation=(self.inflation(first), self.inflation(second)),
        )
        least = self.least_variances[first] + self.least_variances[second]
        difference = self.means[first] - self.means[second]
        return comparison.at(difference).known_to(least, None).with_interval()

    def compare_all(self, best: str, others: Sequence[str]) -> dict[str, Comparison]:
        """By cell, the best one ÷ it."""
        pool = pool_of([self.trials[cell] for cell in (best, *others)])
        return {other: self.compare(best, other, pool) for other in others}


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
    known = {cell: [_as_cost(trial, is_rate) for trial in own] for cell, own in trials.items()}
    means = dict(zip(known, cell_means(list(known.values())), strict=True))
    correlation = serial_correlation(residuals([blocks_of(own) for own in known.values()]))
    least = {cell: _least_variance(own, resolution) for cell, own in trials.items()}
    model = _Model(known, means, hosts, correlation if is_ordered else 0.0, least)
    best, *others = sorted(known, key=means.__getitem__)
    comparisons = model.compare_all(best, others)
    independent = replace(model, correlation=0.0)

    def compare_independently(cells: Sequence[str]) -> tuple[list[Comparison], int]:
        most = max(len(known[cell]) for cell in (best, *cells))
        return list(independent.compare_all(best, cells).values()), most

    rivals, to_decide = settle(
        comparisons, compare_independently, tolerance=tolerance, significance=significance
    )
    correction = correct_for_selection(list(comparisons.values()), significance)
    tails = {best: (correction.lower_tail, correction.upper_tail)}
    estimates = {
        cell: _estimate(model, cell, is_rate, tails.get(cell, (significance / 2,) * 2))
        for cell in known
    }
    found = [JudgedCell(cell=best, estimate=estimates[best])]
    found += [_beside_best(rival, estimates[rival.cell_id], is_rate) for rival in rivals]
    return TrialsFinding(
        claim=_claim([rival.relation for rival in rivals]),
        cells=tuple(found),
        to_decide=to_decide,
        is_rate=is_rate,
        tolerance=tolerance,
        significance=significance,
        serial_correlation=correlation if is_ordered else None,
    )


def _as_cost(trial: Trial, is_rate: bool) -> Trial:
    return replace(trial, value=1 / trial.value) if is_rate else trial


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


def _estimate(model: _Model, cell: str, is_rate: bool, tails: tuple[float, float]) -> Estimate:
    own = model.trials[cell]
    found = mean_over_hosts(own, model.hosts, model.inflation(cell))
    mean = replace(found, mean=model.means[cell]).known_to(model.least_variances[cell], None)
    estimate = estimate_of_mean(mean, [trial.value for trial in own], tails=tails)
    if not is_rate:
        return estimate
    interval = estimate.interval
    return replace(
        estimate, mean=1 / estimate.mean, interval=None if interval is None else _inverse(interval)
    )


def _beside_best(rival: Rival, estimate: Estimate, is_rate: bool) -> JudgedCell:
    """``comparison`` is the best cell ÷ this one in cost, which is this one ÷ the best in rate."""
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
