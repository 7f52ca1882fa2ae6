"""One model of all trials of a table: means of cells, and comparisons of two."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import log, sqrt
from statistics import fmean, harmonic_mean

from traindyno.figures.autocorrelation import (
    largest_correlation,
    serial_correlation,
    variance_inflation,
)
from traindyno.figures.beyond import NO_RANGE, Range
from traindyno.figures.blocks import (
    NO_POOL,
    Pool,
    blocks_of,
    difference_in_common,
    pool_of,
    residuals,
)
from traindyno.figures.cell_means import fit_cells
from traindyno.figures.estimates import Comparison, Correction, Estimate, compared, estimate_of_mean
from traindyno.figures.host_means import difference_over_hosts, mean_over_hosts, one_more_run
from traindyno.figures.hosts import STATED_PRIOR, HostSpread
from traindyno.figures.in_job.run_scatter import KNOWN_DEGREES
from traindyno.figures.log_means import LogMean, log_mean, variance
from traindyno.figures.table import PAID_AGAIN, RATES, CellColumn, FigureColumn, Figures
from traindyno.figures.trials import Trial, draw_count

# Standard errors of the difference of two runs, within which the long ones agree with the trials.
AGREES_WITHIN = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialModel:
    """What the trials of all cells of ``figures`` show together."""

    figures: Figures
    #: Logarithms, by column and cell.
    means: Mapping[FigureColumn, Mapping[str, float]] = field(repr=False)
    #: What the places of runs in jobs do, from the mean place that the means are of.
    places: Mapping[FigureColumn, Range] = field(default_factory=dict, repr=False)
    #: Correlation of successive trials of a cell, and its upper end by the trials.
    correlation: float = 0.0
    largest_correlation: float = 0.0

    def level(self, cell: str, column: FigureColumn) -> float:
        """The logarithm of the cell's mean, with what the work takes beyond the measured time."""
        return self.means[column][cell] + self.figures.of(cell, column).extra.log_factor

    def place_range(self, cell: str, column: FigureColumn) -> Range:
        """The cell's runs in shared jobs leave open which place is that of the whole workload; one
        long run of its own does not.
        """
        own = self.figures.of(cell, column)
        is_open = own.long_mean is None and any(trial.place for trial in own.trials)
        return self.places.get(column, NO_RANGE) if is_open else NO_RANGE

    def inflation(self, count: int) -> float:
        """The factor of the variance of so many trials, because they resemble each other."""
        return variance_inflation(self.correlation, count)

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
        own = self.figures.of(cell, column)
        if not own.trials:
            return None
        if correction and column in RATES:
            correction = correction.of_rate()
        hosts = own.facts.hosts
        inflation = self.inflation(len(own.trials))
        if correction is None and draw_count(own.trials) == 1:
            mean = log_mean(own.values, inflation=inflation)
        else:
            mean = mean_over_hosts(own.trials, hosts, inflation)
        mean = _with_known_spread(mean, [own])
        mean = mean.known_to(own.least_variance, own.facts.least_degrees)
        long = own.long_mean
        if long is not None and mean.variance is not None:
            # one run, on whatever hosts it has
            mean = replace(mean, variance=one_more_run(own.trials, hosts, inflation)[0])
        level = self.means[column][cell] if long is None else long
        mean = replace(mean, mean=level).plus(own.extra.log_factor, own.extra.variance)
        return estimate_of_mean(
            mean,
            own.values,
            tails=(correction.lower_tail, correction.upper_tail) if correction else None,
            undecided=own.extra.range.plus(_range_of(own.facts.decisive.range, column)).plus(
                self.place_range(cell, column)
            ),
        )

    def compare(
        self, first: str, second: str, column: FigureColumn, pool: Pool = NO_POOL
    ) -> Comparison | None:
        """The ratio first ÷ second; None if one of them has no value.

        ``pool``: the values of all cells by block, which tell what trials of one block share.
        """
        one, other = (self.figures.of(cell, column) for cell in (first, second))
        if not one.trials or not other.trials:
            return None
        comparison = compare_on_hosts(
            one.trials,
            other.trials,
            pool=pool,
            spreads=(one.facts.hosts, other.facts.hosts),
            inflation=(self.inflation(len(one.trials)), self.inflation(len(other.trials))),
        )
        difference = _with_known_spread(comparison.difference, [one, other])
        apart = self.means[column][first] - self.means[column][second]
        difference = replace(difference, mean=apart)
        undecided = one.facts.undecided.range_against(other.facts.undecided)
        if one.long_mean is not None and other.long_mean is not None:
            apart = one.long_mean - other.long_mean
            difference = _of_long_runs(difference, apart, [one.values, other.values])
            undecided = one.facts.decisive.range_against(other.facts.decisive)
        least = one.least_variance + other.least_variance
        difference = difference.known_to(least, one.facts.least_degrees).plus(
            one.extra.log_factor - other.extra.log_factor,
            one.extra.variance + other.extra.variance,
        )
        beyond = one.extra.range_against(other.extra).plus(_range_of(undecided, column))
        return compared(difference).with_range(beyond).with_interval()

    def compare_all(
        self, best: str, others: Sequence[str], column: FigureColumn
    ) -> dict[str, Comparison]:
        """By cell, the best one ÷ it."""
        pool = pool_of([self.figures.of(cell, column).trials for cell in (best, *others)])
        pairs = ((cell, self.compare(best, cell, column, pool)) for cell in others)
        return {cell: comparison for cell, comparison in pairs if comparison}


def fit_model(figures: Figures) -> TrialModel:
    """All cells' means from one model, of trials that are independent of each other."""
    fitted = {column: fit_cells([*trials.values()]) for column, trials in figures.columns.items()}
    return TrialModel(
        figures=figures,
        means={
            column: dict(zip(trials, fitted[column].means, strict=True))
            for column, trials in figures.columns.items()
        },
        places={column: fit.places for column, fit in fitted.items()},
    )


def correlated(model: TrialModel, column: FigureColumn) -> TrialModel:
    """The model in which trials resemble the one before as those of ``column`` do."""
    figures = model.figures
    within = residuals([blocks_of(figures.of(cell, column).trials) for cell in figures.cells])
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


def compare_on_hosts(
    first: Sequence[Trial],
    second: Sequence[Trial],
    *,
    pool: Pool = NO_POOL,
    spreads: tuple[HostSpread, HostSpread] = (STATED_PRIOR, STATED_PRIOR),
    inflation: tuple[float, float] = (1.0, 1.0),
) -> Comparison:
    """The ratio first ÷ second, by its spread from block to block.

    Too few observations leave the spread to the draws of hosts: ``spreads`` are the priors of the
    two cells. ``inflation``: the factor of each cell's variance (see ``serial_correlation``).
    """
    within = difference_in_common(first, second, pool, inflation=max(inflation))
    return compared(within or difference_over_hosts(first, second, spreads, inflation))


def _with_known_spread(mean: LogMean, sides: Sequence[CellColumn]) -> LogMean:
    """Trials of one seed tell no spread. Where other work may stall runs, a few that agree by
    chance are not believed to scatter so little.
    """
    if not all(side.is_spread_known for side in sides):
        return replace(mean, variance=None, degrees_of_freedom=None)
    if not any(side.scatter.has_stalls for side in sides):
        return mean
    assumed = sum(side.scatter.share**2 / len(side.trials) for side in sides)
    return mean.moderated(assumed, KNOWN_DEGREES)


def _of_long_runs(
    difference: LogMean, of_long: float, trials: Sequence[Sequence[float]]
) -> LogMean:
    """The difference of the trials if one long run of each cell agrees with it, since several
    trials know more of the ratio; otherwise that of the long runs, with the spread of single
    trials.
    """
    if difference.variance is None:
        spreads = [variance([log(value) for value in own]) for own in trials if len(own) > 1]
        if not spreads:
            return replace(difference, mean=of_long)
        degrees = max(map(len, trials)) - 1
        return LogMean(mean=of_long, variance=2 * max(spreads), degrees_of_freedom=degrees)
    of_one = difference.inflated(harmonic_mean(map(len, trials)))
    apart = abs(of_long - difference.mean)
    agrees = apart <= AGREES_WITHIN * sqrt(of_one.variance or 0.0)
    return difference if agrees else replace(of_one, mean=of_long)


def _range_of(of_step: Range, column: FigureColumn) -> Range:
    """Range of a quantity, from the range of the time of a step."""
    if column in PAID_AGAIN:
        return of_step
    return of_step.inverse() if column in RATES else NO_RANGE
