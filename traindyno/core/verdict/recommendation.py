"""The best cell for the goal, how each other one compares with it, and its figures corrected for selection."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import exp

from traindyno.core.costs.prediction import Prediction
from traindyno.core.statistics.estimates import Comparison, Estimate, Interval
from traindyno.core.statistics.hosts import Trial, pools_of
from traindyno.core.statistics.selection import (
    Correction,
    Relation,
    correct_for_selection,
    count_contenders,
    relate,
    trials_to_decide,
)
from traindyno.core.suite.goal import QualityTarget
from traindyno.core.suite.suite import Cell
from traindyno.core.verdict.cell_quality import CellQuality
from traindyno.core.verdict.cell_row import CellRow, with_prediction
from traindyno.core.verdict.cell_trials import CellTrials, Noise, compare_cells, estimate_cell
from traindyno.core.verdict.quantity import (
    Quantity,
    SecondsToTarget,
    UsdToTarget,
    projected_billable_seconds,
    projected_instance_hours,
    projected_seconds,
    projected_usd,
    samples_per_second,
    steps_per_second,
    tokens_per_second,
)

# A ratio above 1 by rounding is no difference.
LEVEL = 1 + 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Rival:
    """``comparison`` is the recommended cell ÷ this one, of the goal's metric: less is better.

    ``is_across_hosts``: one of the two ran on one set of hosts, and the other one not on the same.
    """

    cell_id: str
    comparison: Comparison
    relation: Relation
    is_across_hosts: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Recommendation:
    """``rivals`` are all other eligible cells, the nearest first.

    ``needs_longer_trials``: with as long trials as these, no number of them decides, because it is open what the cells'
    rates are, or because only that makes the answer open. ``needs_other_hosts``: trials on the same hosts don't decide.
    """

    best: CellTrials
    rivals: tuple[Rival, ...]
    trials_to_decide: int | None
    needs_longer_trials: bool = False
    needs_other_hosts: bool = False

    @property
    def comparisons(self) -> list[Comparison]:
        return [rival.comparison for rival in self.rivals]

    def simultaneous(self, comparison: Comparison, significance: float) -> tuple[Interval | None, bool]:
        """The interval of one comparison and whether it detects a difference, although the best cell was selected.

        Any contender might have been selected instead, so the bound in favour of the best holds for all of them
        (Bonferroni's form of Dunnett's comparison with a control, 1955, with each cell's own variance).
        """
        tail = significance / 2 / (count_contenders(self.comparisons) + 1)
        interval = comparison.interval_with(significance / 2, tail)
        return interval, interval is not None and (interval.high < 1 or interval.low > 1)


def recommend(
    eligible: Sequence[CellTrials], quantity: Quantity, noise: Noise, *, tolerance: float, significance: float
) -> Recommendation | None:
    """The cell with the smallest ``quantity``, which all ``eligible`` cells have. None without eligible cells."""
    if not eligible:
        return None
    best, others, comparisons = _pick(eligible, quantity, noise)
    relations = relate(comparisons, tolerance=tolerance, significance=significance)
    rivals = tuple(
        Rival(
            cell_id=other.cell.cell_id,
            comparison=comparison,
            relation=relation,
            is_across_hosts=comparison.host_variance is not None,
        )
        for other, comparison, relation in zip(others, comparisons, relations, strict=True)
    )
    needs_longer = _needs_longer_trials(best, others, comparisons, tolerance, significance)
    still_open = [other for other, rival in zip(others, rivals, strict=True) if rival.relation is Relation.OPEN]
    wanted, needs_hosts = None, False
    if still_open and not needs_longer:
        wanted, needs_hosts = _trials_to_decide(best, still_open, quantity, noise, tolerance)
    return Recommendation(
        best=best,
        rivals=rivals,
        trials_to_decide=wanted,
        needs_longer_trials=needs_longer,
        needs_other_hosts=needs_hosts,
    )


def _pick(
    eligible: Sequence[CellTrials], quantity: Quantity, noise: Noise
) -> tuple[CellTrials, list[CellTrials], list[Comparison]]:
    """The best cell, the others from the nearest one on, and the best ÷ each of them.

    A cell that lost its trial of a slow round has a better mean than its comparisons say: while a cell is ahead of the
    best one, the cell furthest ahead takes its place, each cell once at most.
    """
    best, *others = sorted(eligible, key=lambda each: _mean(each, quantity, noise))
    comparisons, tried = _compare_all(best, others, quantity, noise), {best.cell.cell_id}
    while True:
        ratio, index = max(((each.ratio, -index) for index, each in enumerate(comparisons)), default=(1.0, 0))
        if ratio <= LEVEL or others[-index].cell.cell_id in tried:
            nearest = sorted(zip(others, comparisons, strict=True), key=lambda pair: -pair[1].ratio)
            return best, [other for other, _ in nearest], [comparison for _, comparison in nearest]
        best, others = others[-index], [best, *others[:-index], *others[-index + 1 :]]
        comparisons = _compare_all(best, others, quantity, noise)
        tried.add(best.cell.cell_id)


def _needs_longer_trials(
    best: CellTrials,
    others: Sequence[CellTrials],
    comparisons: Sequence[Comparison],
    tolerance: float,
    significance: float,
) -> bool:
    found = relate(comparisons, tolerance=tolerance, significance=significance)
    if Relation.OPEN not in found and Relation.UNKNOWN not in found:
        return False
    plain = [comparison.without_range() for comparison in comparisons]
    return Relation.OPEN not in relate(plain, tolerance=tolerance, significance=significance)


def _compare_all(best: CellTrials, others: Sequence[CellTrials], quantity: Quantity, noise: Noise) -> list[Comparison]:
    """The best cell ÷ each other one."""
    pools = pools_of([each.trials(quantity) for each in (best, *others)])
    found = (compare_cells(best, other, quantity, noise, pools) for other in others)
    return [comparison for comparison in found if comparison]


def against_baseline(found: Recommendation, baseline: Cell) -> Rival | None:
    return next((rival for rival in found.rivals if rival.cell_id == baseline.cell_id), None)


def corrected_row(
    found: Recommendation, rows: Sequence[CellRow], noise: Noise, target: QualityTarget | None, *, significance: float
) -> CellRow:
    """The best cell's row with its time, cost and rates corrected for its selection at this look."""
    row = next(each for each in rows if each.cell_id == found.best.cell.cell_id)
    correction = correct_for_selection(found.comparisons, significance)
    row = replace(
        row,
        seconds=estimate_cell(found.best, projected_seconds, noise, correction),
        usd=estimate_cell(found.best, projected_usd, noise, correction),
    )
    return replace(
        with_prediction(row, found.best, noise),
        instance_hours=estimate_cell(found.best, projected_instance_hours, noise, correction),
        samples_per_second=estimate_cell(found.best, samples_per_second, noise, correction.of_rate()),
        tokens_per_second=estimate_cell(found.best, tokens_per_second, noise, correction.of_rate()),
        steps_per_second=estimate_cell(found.best, steps_per_second, noise, correction.of_rate()),
        billable_seconds=estimate_cell(found.best, projected_billable_seconds, noise, correction),
        quality=row.quality if target is None else _corrected_quality(found.best, row, noise, correction, target),
    )


def _corrected_quality(
    best: CellTrials, row: CellRow, noise: Noise, correction: Correction, target: QualityTarget
) -> CellQuality:
    return replace(
        row.quality,
        seconds=estimate_cell(best, SecondsToTarget(target=target), noise, correction),
        usd=estimate_cell(best, UsdToTarget(target=target), noise, correction),
    )


def _mean(trials: CellTrials, quantity: Quantity, noise: Noise) -> float:
    found = estimate_cell(trials, quantity, noise)
    return found.mean if found else float("inf")


def _trials_to_decide(
    best: CellTrials, others: Sequence[CellTrials], quantity: Quantity, noise: Noise, tolerance: float
) -> tuple[int | None, bool]:
    """The trials of each cell in a suite of these cells only, if trials are independent; None if none decide.

    And whether they would if they ran on other hosts.
    """
    comparisons = _compare_all(best, others, quantity, Noise(spreads=noise.spreads))
    most = max(len(each.values(quantity)) for each in (best, *others))
    found = trials_to_decide(comparisons, trials=most, tolerance=tolerance)
    alone = [each.without_hosts() for each in comparisons]
    is_by_hosts = found is None and trials_to_decide(alone, trials=most, tolerance=tolerance) is not None
    return found, is_by_hosts


def scaled_row(row: CellRow, factor: float) -> CellRow:
    """With ``factor`` times its time and cost, and less of its rates."""
    return replace(
        row,
        seconds=_times(row.seconds, factor),
        usd=_times(row.usd, factor),
        prediction=_predicted(row.prediction, factor),
        instance_hours=_times(row.instance_hours, factor),
        samples_per_second=_times(row.samples_per_second, 1 / factor),
        tokens_per_second=_times(row.tokens_per_second, 1 / factor),
        steps_per_second=_times(row.steps_per_second, 1 / factor),
        billable_seconds=_times(row.billable_seconds, factor),
        model_flops_utilization=row.model_flops_utilization and row.model_flops_utilization / factor,
        quality=replace(row.quality, seconds=_times(row.quality.seconds, factor), usd=_times(row.quality.usd, factor)),
    )


def ratios_of_dropped(
    found: Recommendation, dropped: Iterable[CellTrials], compared: Sequence[CellTrials], quantity: Quantity
) -> dict[str, float]:
    """Cell id → the recommended cell ÷ it, of cells that a race left out after one run.

    By that run and the best one beside it in its job, or else the best first run, of a cell that was compared.
    """
    ratios = {found.best.cell.cell_id: 1.0} | {rival.cell_id: rival.comparison.ratio for rival in found.rivals}
    pairs = ((each, _beside(each, compared, quantity)) for each in dropped)
    return {
        each.cell.cell_id: ratios[other.cell.cell_id] * _ratio(other, each, run, quantity)
        for each, (other, run) in pairs
    }


def _beside(dropped: CellTrials, compared: Sequence[CellTrials], quantity: Quantity) -> tuple[CellTrials, Trial]:
    own = dropped.trials(quantity)[0]
    runs = [(each, run) for each in compared for run in each.trials(quantity) if own.job and run.job == own.job]
    firsts = [(each, each.trials(quantity)[0]) for each in compared]
    return min(runs or firsts, key=lambda pair: pair[1].value)


def _ratio(first: CellTrials, second: CellTrials, run: Trial, quantity: Quantity) -> float:
    extra, other = first.extra(quantity), second.extra(quantity)
    return run.value / second.trials(quantity)[0].value * exp(extra.log_factor - other.log_factor)


def _times(estimate: Estimate | None, factor: float) -> Estimate | None:
    if estimate is None:
        return None
    return replace(estimate, mean=estimate.mean * factor, interval=_interval_times(estimate.interval, factor))


def _interval_times(interval: Interval | None, factor: float) -> Interval | None:
    return interval and replace(interval, low=interval.low * factor, high=interval.high * factor)


def _predicted(prediction: Prediction | None, factor: float) -> Prediction | None:
    if prediction is None:
        return None
    seconds, usd = (_interval_times(each, factor) for each in (prediction.seconds, prediction.usd))
    return replace(prediction, seconds=seconds, usd=usd)
