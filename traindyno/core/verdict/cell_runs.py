"""A cell with its runs: which of them count as trials, and which are long runs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from traindyno.core.costs.hazard import (
    Hazard,
    HazardKey,
    UnevenFaults,
    find_uneven_faults,
    hazard_key,
    observe_hazards,
)
from traindyno.core.jobs.outcome import OWN_FAILURES, SUCCESSES, Outcome
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.measurement.throughput import Throughput
from traindyno.core.suite.cells import Cell
from traindyno.core.suite.suite import Suite
from traindyno.figures.estimates import mean_of
from traindyno.figures.hosts import HostClass, host_class
from traindyno.figures.trials import draws_of


@dataclass(frozen=True, slots=True, kw_only=True)
class CellRuns:
    """The runs of one cell: ``measured`` ended successfully with a rate, ``others`` did not."""

    cell: Cell
    measured: tuple[RunResult, ...]
    others: tuple[RunResult, ...]
    #: The long run whose figures replace those of the trials; in none of the two above.
    confirmed: RunResult | None = None
    #: Long runs that change no figure: one whose rival's was lost, and those that took too long for
    #: their limit, as no trial does.
    unconfirmed: tuple[RunResult, ...] = ()
    #: How often its capacity fails; None where nothing ran.
    hazard: Hazard | None = None
    #: Faults that may be its own; None where they are as on the other cells of its type.
    uneven_faults: UnevenFaults | None = None
    #: The execution, where several with the same cell are compared.
    execution_id: str = ""

    @property
    def key(self) -> str:
        """Names the cell in a table."""
        return f"{self.execution_id} {self.cell.cell_id}".strip()

    @property
    def failed(self) -> int:
        """Trials that the cell's own settings made fail, those that diverged included."""
        return sum(result.outcome in OWN_FAILURES for result in self.others)

    @property
    def outpaced(self) -> tuple[RunResult, ...]:
        """Trials that their jobs ended because the cell can't win: no failures."""
        return tuple(result for result in self.others if result.outcome is Outcome.OUTPACED)

    @property
    def least_behind(self) -> float | None:
        """By which share its outpaced trials were slower at least than the runs ahead of them, the
        largest one.
        """
        ratios = (result.bound.least_ratio for result in self.outpaced if result.bound)
        return max((ratio - 1 for ratio in ratios), default=None)

    @property
    def facts(self) -> Mapping[str, Any]:
        """What the first measured trial reported of its environment."""
        return self.measured[0].facts if self.measured else {}

    @property
    def rates(self) -> list[Throughput]:
        return [result.throughput for result in self.measured if result.throughput]

    @property
    def samples_per_step(self) -> int | None:
        """Samples of all ranks together; None if they are unknown or differ between trials."""
        counts = {rate.samples_per_step for rate in self.rates}
        return next(iter(counts)) if len(counts) == 1 else None

    @property
    def host_draws(self) -> int | None:
        """How many draws of hosts the measured trials ran on; None if a trial's hosts are
        unknown.
        """
        hosts = [hosts_of(result) for result in self.measured]
        return len(set(draws_of(hosts))) if hosts and None not in hosts else None

    @property
    def host_class(self) -> HostClass:
        return host_class(
            self.cell.settings.instance_count, mean_of(rate.data_wait_share for rate in self.rates)
        )

    @property
    def results(self) -> tuple[RunResult, ...]:
        confirmed = [self.confirmed] if self.confirmed else []
        return (*self.measured, *self.others, *confirmed, *self.unconfirmed)

    @property
    def lost_long_run(self) -> Outcome | None:
        """How its long run ended; None without one, or if it was measured."""
        long = [result for result in self.results if result.run.confirming_steps]
        return None if not long or any(map(is_measured, long)) else long[-1].outcome

    @property
    def unpaired_ratio(self) -> float | None:
        """The time of a step of its long run ÷ that of its trials, if its rival's was lost."""
        long = [result.throughput for result in self.unconfirmed if is_measured(result)]
        rates = [rate.steps_per_second for rate in self.rates]
        if not long or long[0] is None or not rates:
            return None
        return sum(rates) / len(rates) / long[0].steps_per_second


def group_runs(
    suite: Suite,
    cells: Sequence[Cell],
    results: Sequence[RunResult],
    *,
    hazards: Mapping[HazardKey, Hazard] | None = None,
) -> tuple[CellRuns, ...]:
    """The runs of each cell, in the order of the cells and of the trials' numbers.

    ``hazards`` of None: as the results and the suite's expectations of spot say.
    """
    by_cell: dict[str, list[RunResult]] = {cell.cell_id: [] for cell in cells}
    for result in sorted(map(_with_divergence, results), key=lambda result: result.run.trial):
        by_cell.setdefault(result.run.cell.cell_id, []).append(result)
    known = observe_hazards(results, suite.pricing.spot) if hazards is None else hazards
    is_long_lost = bool(lost_long_runs(results))
    uneven = find_uneven_faults({cell_id: own for cell_id, own in by_cell.items() if own})
    grouped = []
    for cell in cells:
        own = by_cell[cell.cell_id]
        measured = [result for result in own if is_measured(result)]
        long = [result for result in measured if result.run.confirming_steps]
        late = [result for result in own if _is_too_long(result)]
        others = (result for result in own if not (is_measured(result) or _is_too_long(result)))
        grouped.append(
            CellRuns(
                cell=cell,
                measured=tuple(result for result in measured if not result.run.confirming_steps),
                others=tuple(others),
                confirmed=None if is_long_lost or not long else long[0],
                unconfirmed=(*late, *(long if is_long_lost else ())),
                hazard=known.get(hazard_key(own[0])) if own else None,
                uneven_faults=uneven.get(cell.cell_id),
            )
        )
    return tuple(grouped)


def lost_long_runs(results: Sequence[RunResult]) -> dict[str, list[RunResult]]:
    """Cell id → its long runs, of cells of which none was measured."""
    long: dict[str, list[RunResult]] = {}
    for result in results:
        if result.run.confirming_steps:
            long.setdefault(result.run.cell.cell_id, []).append(result)
    return {cell_id: own for cell_id, own in long.items() if not any(map(is_measured, own))}


def _is_too_long(result: RunResult) -> bool:
    return bool(result.run.confirming_steps) and result.outcome is Outcome.TIMED_OUT


def is_measured(result: RunResult) -> bool:
    """A run that ended at its target counts even if it is too short for a rate."""
    measured = result.measured
    return (
        result.outcome in SUCCESSES
        and measured is not None
        and (measured.throughput is not None or measured.ended_at_target)
    )


def _with_divergence(result: RunResult) -> RunResult:
    """A loss that is not finite is a divergence, whether the script noticed it or not."""
    if result.measured is None or result.measured.loss.diverged_at_step is None:
        return result
    return replace(result, outcome=Outcome.LOSS_DIVERGED)


def hosts_of(result: RunResult) -> frozenset[str] | None:
    """The machines of a run; None if the log does not identify them."""
    environment = result.environment
    return (
        frozenset(environment.host_ids)
        if environment is not None and environment.host_ids
        else None
    )
