"""A table of figures: one row a trial, with a column for each quantity of it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from math import log

from traindyno.figures.beyond import ExtraTime, Undecided
from traindyno.figures.hosts import KNOWN, STATED_PRIOR, HostSpread
from traindyno.figures.in_job.run_scatter import NO_SCATTER, RunScatter
from traindyno.figures.trials import Trial


class FigureColumn(StrEnum):
    """A quantity of a trial. Times, costs and hours are those of the whole work, unless they are
    until a quality is reached.
    """

    SAMPLES_PER_SECOND = "samples_per_second"
    TOKENS_PER_SECOND = "tokens_per_second"
    STEPS_PER_SECOND = "steps_per_second"
    #: Wall clock, with waiting and starting.
    SECONDS = "seconds"
    #: Billed seconds of each instance.
    BILLABLE_SECONDS = "billable_seconds"
    USD = "usd"
    INSTANCE_HOURS = "instance_hours"
    SECONDS_TO_TARGET = "seconds_to_target"
    USD_TO_TARGET = "usd_to_target"
    #: What was measured of trials that ran anywhere.
    VALUE = "value"

    @property
    def is_time(self) -> bool:
        return self in (FigureColumn.SECONDS, FigureColumn.SECONDS_TO_TARGET)

    @property
    def is_money(self) -> bool:
        return self in (FigureColumn.USD, FigureColumn.USD_TO_TARGET)


RATES = (
    FigureColumn.SAMPLES_PER_SECOND,
    FigureColumn.TOKENS_PER_SECOND,
    FigureColumn.STEPS_PER_SECOND,
)
TO_TARGET = (FigureColumn.SECONDS_TO_TARGET, FigureColumn.USD_TO_TARGET)
#: A failed trial has to be paid again before the work is complete; so it has until a target is
#: reached.
PAID_AGAIN = (
    FigureColumn.SECONDS,
    FigureColumn.BILLABLE_SECONDS,
    FigureColumn.USD,
    FigureColumn.INSTANCE_HOURS,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialRow:
    """A trial. Values that are unknown or 0 are absent.

    Args:
        cell: names the cell of the table.
        block: the round that it shares with trials of other cells, or one of its own.
        hosts: the machines that it ran on; None where they are unknown.
        job: the one that carried it with others, and ``place`` its place there, from 1.
    """

    cell: str
    values: Mapping[FigureColumn, float]
    block: str
    hosts: frozenset[str] | None = None
    job: str | None = None
    place: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LongRun:
    """The run of a cell whose figures replace those of its trials."""

    values: Mapping[FigureColumn, float]
    undecided: Undecided = field(default_factory=Undecided)


@dataclass(frozen=True, slots=True, kw_only=True)
class CellFacts:
    """What is known of a cell beside its trials."""

    #: The spread between hosts that is assumed.
    hosts: HostSpread = STATED_PRIOR
    #: How far its single runs scatter, and their times until a quality.
    scatter: RunScatter = NO_SCATTER
    scatter_to_target: RunScatter = NO_SCATTER
    #: What its trials can't decide about its rate.
    undecided: Undecided = field(default_factory=Undecided)
    long_run: LongRun | None = None
    #: What the work takes beyond the measured time.
    extra: Mapping[FigureColumn, ExtraTime] = field(default_factory=dict)
    #: Least variance of the mean's logarithm: values in steps hide a spread of half a step.
    least_variances: Mapping[FigureColumn, float] = field(default_factory=dict)
    #: How well it is known; None: as the trials' own variance.
    least_degrees: float | None = KNOWN
    #: Several trials tell how far seeds differ.
    are_draws_of_seeds: bool = True

    @property
    def decisive(self) -> Undecided:
        """What the run or the runs leave open whose figures count."""
        return self.long_run.undecided if self.long_run else self.undecided


@dataclass(frozen=True, slots=True, kw_only=True)
class CellColumn:
    """One quantity of a cell: the trials that have a value of it, and what is known beside them."""

    column: FigureColumn
    facts: CellFacts
    trials: tuple[Trial, ...]

    @property
    def values(self) -> list[float]:
        return [trial.value for trial in self.trials]

    @property
    def extra(self) -> ExtraTime:
        return self.facts.extra.get(self.column, ExtraTime())

    @property
    def scatter(self) -> RunScatter:
        return self.facts.scatter_to_target if self.column in TO_TARGET else self.facts.scatter

    @property
    def least_variance(self) -> float:
        return self.facts.least_variances.get(self.column, 0.0)

    @property
    def long_mean(self) -> float | None:
        """The logarithm of what the cell's long run shows; None without one."""
        run = self.facts.long_run
        value = run.values.get(self.column) if run and self.column not in TO_TARGET else None
        return None if value is None else log(value)

    @property
    def is_spread_known(self) -> bool:
        """False for what depends on the seed, if the trials are not draws of it."""
        return self.column not in TO_TARGET or self.facts.are_draws_of_seeds


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """The table by columns, each by cell; ``cells`` are in the order in which they were given."""

    cells: Mapping[str, CellFacts]
    columns: Mapping[FigureColumn, Mapping[str, tuple[Trial, ...]]]

    def of(self, cell: str, column: FigureColumn) -> CellColumn:
        return CellColumn(
            column=column, facts=self.cells[cell], trials=self.columns[column].get(cell, ())
        )


def tabulate(rows: Iterable[TrialRow], cells: Mapping[str, CellFacts]) -> Figures:
    """The table of ``rows``, whose cells are all among ``cells``."""
    columns: dict[FigureColumn, dict[str, list[Trial]]] = {column: {} for column in FigureColumn}
    for row in rows:
        for column, value in row.values.items():
            trial = Trial(
                value=value, hosts=row.hosts, block=row.block, job=row.job, place=row.place
            )
            columns[column].setdefault(row.cell, []).append(trial)
    return Figures(
        cells=cells,
        columns={
            column: {cell: tuple(by_cell[cell]) for cell in cells if cell in by_cell}
            for column, by_cell in columns.items()
        },
    )
