"""One model of all trials of a table: means of cells, comparisons of two, and the best cell."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import log
from statistics import fmean
from typing import TypeVar

from traindyno.figures.autocorrelation import (
    largest_correlation,
    serial_correlation,
    variance_inflation,
)
from traindyno.figures.blocks import NO_POOL, Pool, residuals
from traindyno.figures.cell_means import cell_means
from traindyno.figures.estimates import (
    NO_RANGE,
    Comparison,
    Estimate,
    LogMean,
    Range,
    comparison_of,
    estimate_of_mean,
    log_mean,
    variance,
)
from traindyno.figures.hosts import (
    Trial,
    blocks_of,
    compare_on_hosts,
    draw_count,
    mean_over_hosts,
    one_more_run,
    pool_of,
)
from traindyno.figures.in_job.run_scatter import KNOWN_DEGREES
from traindyno.figures.selection import Correction
from traindyno.figures.settle import Rival, ToDecide, settle
from traindyno.figures.table import PAID_AGAIN, RATES, FigureColumn, Figures

# Standard errors of the difference of two runs, within which the long ones agree with the trials.
AGREES_WITHIN = 2
Known = TypeVar("Known", LogMean, Comparison)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recommendation:
    """The best cell; ``rivals`` are all others that were compared, the nearest first."""

    best: str
    rivals: tuple[Rival, ...]
    to_decide: ToDecide

    @property
    def comparisons(self) -> list[Comparison]:
        return [rival.comparison for rival in self.rivals]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialModel:
    """What the trials of all cells of ``figures`` show together."""

    figures: Figures
    #: Logarithms, by column and cell.
    means: Mapping[FigureColumn, Mapping[str, float]] = field(repr=False)
    #: With the trial before it in its cell, and the upper end of what the trials make likely.
    correlation: float = 0.0
    largest_correlation: float = 0.0

    def level(self, cell: str, column: FigureColumn) -> float:
        """The logarithm of the cell's mean, with what the work takes beyond the measured time."""
        return self.means[column][cell] + self.figures.extra(cell, column).log_factor

    def inflation(self, count: int) -> float:
        """The factor of the variance of so many trials, because they resemble each other."""
        return variance_inflation(self.correlation, count) if self.correlation else 1.0

    def doubt(self, count: int) -> float:
        """The factor of the variance if trials are as correlated as is likely."""
        return max(1.0, variance_inflation(self.largest_correlation, count) / self.inflation(count))

    def estimate(
        self, cell: str, column: FigureColumn, correction: Correction | None = None
    ) -> Estimate | None:
        """The estimate over the cell's hosts, or for the one set on which all trials ran.

        With a ``correction`` it is for other hosts too: the spread between them is assumed if there
        was one set only. Its interval includes what the trials can't decide. None if no trial has a
        value.
        """
        figures = self.figures
        trials = figures.trials(cell, column)
        if not trials:
            return None
        facts = figures.cells[cell]
        extra = figures.extra(cell, column)
        values = [trial.value for trial in trials]
        inflation = self.inflation(len(trials))
        if correction is None and draw_count(trials) == 1:
            mean = log_mean(values, inflation=inflation)
        else:
            mean = mean_over_hosts(trials, facts.hosts, inflation)
        if not figures.is_spread_known(cell, column):
            mean = replace(mean, variance=None, degrees_of_freedom=None)
        mean = self._moderated(mean, [cell], column)
        mean = mean.known_to(figures.least_variance(cell, column), facts.least_degrees)
        long = figures.long_mean(cell, column)
        if long is not None and mean.variance is not None:
            # one run, on whatever hosts it has
            mean = replace(mean, variance=one_more_run(trials, facts.hosts, inflation)[0])
        level = self.means[column][cell] if long is None else long
        mean = replace(mean, mean=level).plus(extra.log_factor, extra.variance)
        return estimate_of_mean(
            mean,
            values,
            tails=(correction.lower_tail, correction.upper_tail) if correction else None,
            undecided=extra.range.plus(_range_of(facts.decisive.range, column)),
        )

    def compare(
        self, first: str, second: str, column: FigureColumn, pool: Pool = NO_POOL
    ) -> Comparison | None:
        """The ratio first ÷ second; None if one of them has no value.

        ``pool``: the values of all cells by block, which tell what trials of one block share.
        """
        figures = self.figures
        pair = (first, second)
        trials = [figures.trials(cell, column) for cell in pair]
        if not all(trials):
            return None
        facts = [figures.cells[cell] for cell in pair]
        comparison = compare_on_hosts(
            trials[0],
            trials[1],
            pool=pool,
            spreads=(facts[0].hosts, facts[1].hosts),
            inflation=(self.inflation(len(trials[0])), self.inflation(len(trials[1]))),
        )
        if not all(figures.is_spread_known(cell, column) for cell in pair):
            comparison = Comparison(ratio=comparison.ratio, host_variance=comparison.host_variance)
        comparison = self._moderated(comparison, pair, column)
        comparison = comparison.at(self.means[column][first] - self.means[column][second])
        undecided = [cell.undecided for cell in facts]
        long = [figures.long_mean(cell, column) for cell in pair]
        if long[0] is not None and long[1] is not None:
            comparison = _of_long_runs(comparison, long[0] - long[1], trials)
            undecided = [cell.long_run.undecided for cell in facts if cell.long_run]
        comparison = comparison.known_to(
            sum(figures.least_variance(cell, column) for cell in pair), facts[0].least_degrees
        )
        extra = figures.extra(first, column)
        other = figures.extra(second, column)
        comparison = comparison.scaled(
            extra.log_factor - other.log_factor, extra.variance + other.variance
        )
        of_steps = _range_of(undecided[0].range_against(undecided[1]), column)
        return comparison.with_range(extra.range_against(other).plus(of_steps)).with_interval()

    def compare_all(
        self, best: str, others: Sequence[str], column: FigureColumn
    ) -> dict[str, Comparison]:
        """By cell, the best one ÷ it."""
        pool = pool_of([self.figures.trials(cell, column) for cell in (best, *others)])
        pairs = ((cell, self.compare(best, cell, column, pool)) for cell in others)
        return {cell: comparison for cell, comparison in pairs if comparison}

    def recommend(
        self, cells: Sequence[str], column: FigureColumn, *, tolerance: float, significance: float
    ) -> Recommendation | None:
        """The cell with the smallest figure, which all of ``cells`` have; None without cells."""
        if not cells:
            return None
        figures = self.figures
        means = [(cell, figures.long_mean(cell, column)) for cell in cells]
        long = {cell: mean for cell, mean in means if mean is not None}
        if len(long) < 2:
            long = {}

        def place(cell: str) -> tuple[bool, float]:
            """Cells that long runs confirm come first: they show what trials are too short for."""
            if cell in long:
                return False, long[cell] + figures.extra(cell, column).log_factor
            return True, self.level(cell, column)

        best, *others = sorted(cells, key=place)
        independent = replace(self, correlation=0.0, largest_correlation=0.0)

        def compare_independently(open_cells: Sequence[str]) -> tuple[list[Comparison], int]:
            most = max(len(figures.trials(cell, column)) for cell in (best, *open_cells))
            return list(independent.compare_all(best, open_cells, column).values()), most

        rivals, to_decide = settle(
            self.compare_all(best, others, column),
            compare_independently,
            tolerance=tolerance,
            significance=significance,
        )
        return Recommendation(best=best, rivals=rivals, to_decide=to_decide)

    def _moderated(self, known: Known, cells: Sequence[str], column: FigureColumn) -> Known:
        """Where other work may stall runs, a few that agree by chance are not believed to scatter
        so little.
        """
        scatters = [self.figures.scatter(cell, column) for cell in cells]
        if not any(scatter.has_stalls for scatter in scatters):
            return known
        counts = [len(self.figures.trials(cell, column)) for cell in cells]
        assumed = sum(
            scatter.share**2 / count for scatter, count in zip(scatters, counts, strict=True)
        )
        return known.moderated(assumed, KNOWN_DEGREES)


def fit_model(figures: Figures) -> TrialModel:
    """All cells' means from one model, of trials that are independent of each other."""
    return TrialModel(
        figures=figures,
        means={
            column: dict(zip(trials, cell_means([*trials.values()]), strict=True)) if trials else {}
            for column, trials in figures.columns.items()
        },
    )


def correlated(model: TrialModel, column: FigureColumn) -> TrialModel:
    """The model in which trials resemble the one before as those of ``column`` do."""
    figures = model.figures
    within = residuals([blocks_of(figures.trials(cell, column)) for cell in figures.cells])
    return replace(
        model,
        correlation=serial_correlation(within),
        largest_correlation=largest_correlation(within),
    )


def model_each_alone(figures: Figures) -> TrialModel:
    """Each cell by its own trials, which are independent of each other."""
    means = {column: _log_means(by_cell) for column, by_cell in figures.columns.items()}
    return TrialModel(figures=figures, means=means)


def _log_means(by_cell: Mapping[str, Sequence[Trial]]) -> dict[str, float]:
    return {cell: fmean(log(trial.value) for trial in own) for cell, own in by_cell.items()}


def _of_long_runs(
    comparison: Comparison, difference: float, trials: Sequence[Sequence[Trial]]
) -> Comparison:
    """The comparison of trials if one long run of each cell agrees with it, since several trials
    know more of the ratio; otherwise the one of the long runs, with the spread of single trials.
    """
    if comparison.standard_error is None:
        spreads = [variance([log(trial.value) for trial in own]) for own in trials if len(own) > 1]
        if not spreads:
            return comparison.at(difference)
        return comparison_of(difference, 2 * max(spreads), max(map(len, trials)) - 1)
    of_one = comparison.inflated(min(map(len, trials)))
    apart = abs(difference - log(comparison.ratio))
    agrees = apart <= AGREES_WITHIN * (of_one.standard_error or 0.0)
    return comparison if agrees else of_one.at(difference)


def _range_of(of_step: Range, column: FigureColumn) -> Range:
    """Range of a quantity, from the range of the time of a step."""
    if column in PAID_AGAIN:
        return of_step
    return of_step.inverse() if column in RATES else NO_RANGE
