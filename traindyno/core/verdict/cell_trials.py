"""A cell with its trials: which of them count as measured, its success rate, and its hosts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import log
from statistics import fmean

from traindyno.core.costs.success import measure_success
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.measurement.seeds import are_draws_of_seeds
from traindyno.core.statistics.estimates import Comparison, Estimate, estimate_of_mean, log_mean
from traindyno.core.statistics.hosts import (
    STATED_PRIOR,
    HostSpread,
    Trial,
    compare_on_hosts,
    draw_count,
    estimate_host_spread,
    mean_over_hosts,
)
from traindyno.core.statistics.selection import Correction
from traindyno.core.statistics.serial_correlation import serial_correlation, variance_inflation
from traindyno.core.suite.suite import Cell
from traindyno.core.verdict.quantity import Quantity, depends_on_seed, is_paid_again

MEASURED_OUTCOMES = (Outcome.COMPLETED, Outcome.COST_STOPPED)
# The cell itself causes these outcomes: the whole workload would end in the same way.
OWN_FAILURES = (
    Outcome.OUT_OF_MEMORY,
    Outcome.LOSS_DIVERGED,
    Outcome.TIMED_OUT,
    Outcome.USER_CODE_ERROR,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CellTrials:
    """``measured`` ended successfully and measured a rate; ``others`` did not."""

    cell: Cell
    measured: tuple[RunResult, ...]
    others: tuple[RunResult, ...]

    @property
    def diverged(self) -> int:
        return sum(result.outcome is Outcome.LOSS_DIVERGED for result in self.others)

    @property
    def failed(self) -> int:
        """Trials that the cell's own settings made fail, those that diverged included."""
        return sum(result.outcome in OWN_FAILURES for result in self.others)

    @property
    def versions(self) -> Mapping[str, str]:
        """The package versions that the first measured trial reported; empty if its log has none."""
        environment = self.measured[0].environment if self.measured else None
        found = environment.facts.get("versions") if environment else None
        return {name: str(version) for name, version in found.items()} if isinstance(found, Mapping) else {}

    @property
    def samples_per_step(self) -> int | None:
        """Samples of all ranks together; None if they are unknown or differ between trials."""
        rates = [each.measured.throughput for each in self.measured if each.measured and each.measured.throughput]
        found = {rate.samples_per_step for rate in rates}
        return next(iter(found)) if len(found) == 1 else None

    @property
    def host_draws(self) -> int | None:
        """How many different sets of hosts the measured trials ran on; None if a trial's hosts are unknown."""
        trials = [Trial(value=1.0, hosts=hosts_of(result)) for result in self.measured]
        return None if not trials or any(trial.hosts is None for trial in trials) else draw_count(trials)

    def spread_is_known(self, quantity: Quantity) -> bool:
        """False for what depends on the seed, if the measured trials are not draws of it."""
        return not depends_on_seed(quantity) or are_draws_of_seeds(self.measured)

    def trials(self, quantity: Quantity) -> tuple[Trial, ...]:
        """The measured trials with a value of the quantity."""
        found = ((quantity(result), hosts_of(result)) for result in self.measured)
        return tuple(Trial(value=value, hosts=hosts) for value, hosts in found if value is not None and value > 0)

    def values(self, quantity: Quantity) -> list[float]:
        return [trial.value for trial in self.trials(quantity)]

    def retries(self, quantity: Quantity) -> "Retries":
        """The factor is exactly 1 if no trial failed, and for quantities that are not paid again."""
        success = measure_success((*self.measured, *self.others))
        if not is_paid_again(quantity) or not success.successes or success.successes == success.attempts:
            return Retries()
        p = (success.successes + 0.5) / (success.attempts + 1)
        return Retries(log_factor=log(success.attempts / success.successes), variance=(1 - p) / (success.attempts * p))


@dataclass(frozen=True, slots=True, kw_only=True)
class Retries:
    """The factor by which failed trials raise time and cost: 1 ÷ success rate, with its uncertainty.

    The rate is binomial; the variance of its logarithm is (1 - p) ÷ (n p) by the delta method, with p by Jeffreys.
    """

    log_factor: float = 0.0
    variance: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """The spread of trials beyond that within cells: between hosts, and the correlation with the previous trial."""

    spread: HostSpread = STATED_PRIOR
    serial_correlation: float = 0.0

    def inflation(self, count: int) -> float:
        return variance_inflation(self.serial_correlation, count) if self.serial_correlation else 1.0


def measure_noise(trials: Sequence[CellTrials], quantity: Quantity, prior: HostSpread = STATED_PRIOR) -> Noise:
    cells = [each.trials(quantity) for each in trials]
    return Noise(
        spread=estimate_host_spread(cells, prior),
        serial_correlation=serial_correlation([[trial.value for trial in cell] for cell in cells]),
    )


def group_trials(cells: Sequence[Cell], results: Sequence[RunResult]) -> tuple[CellTrials, ...]:
    """The trials of each cell, in the order of the cells. A cell's trials are in the order of their numbers."""
    by_cell: dict[str, list[RunResult]] = {}
    for result in sorted(map(_with_divergence, results), key=lambda each: each.run.trial):
        by_cell.setdefault(result.run.cell.cell_id, []).append(result)
    return tuple(
        CellTrials(
            cell=cell,
            measured=tuple(result for result in by_cell.get(cell.cell_id, ()) if is_measured(result)),
            others=tuple(result for result in by_cell.get(cell.cell_id, ()) if not is_measured(result)),
        )
        for cell in cells
    )


def is_measured(result: RunResult) -> bool:
    """A run that ended at its target counts even if it is too short for a rate."""
    measured = result.measured
    return (
        result.outcome in MEASURED_OUTCOMES
        and measured is not None
        and (measured.throughput is not None or measured.ended_at_target)
    )


def _with_divergence(result: RunResult) -> RunResult:
    """A loss that is not finite is a divergence, whether the script noticed it or not."""
    if result.measured is None or result.measured.loss.diverged_at_step is None:
        return result
    return replace(result, outcome=Outcome.LOSS_DIVERGED)


def hosts_of(result: RunResult) -> str | None:
    """The machines of a run as one name; None if the log does not identify them.

    A job on instances that were kept warm ran on the hosts of an earlier job: if these are unknown, all such jobs of
    one instance type count as one draw.
    """
    environment = result.environment
    if environment is not None and environment.host_ids:
        return " ".join(environment.host_ids)
    settings = result.run.cell.settings
    return f"warm {settings.instance_count} × {settings.instance}" if result.started_warm else None


def estimate_cell(
    trials: CellTrials, quantity: Quantity, noise: Noise, correction: Correction | None = None
) -> Estimate | None:
    """The estimate over the cell's hosts, or for the one set on which all trials ran. None if no trial has a value."""
    known = trials.trials(quantity)
    if not known:
        return None
    values = [trial.value for trial in known]
    inflation = noise.inflation(len(known))
    is_one_draw = draw_count(known) == 1
    found = log_mean(values, inflation=inflation) if is_one_draw else mean_over_hosts(known, noise.spread, inflation)
    if not trials.spread_is_known(quantity):
        found = replace(found, variance=None, degrees_of_freedom=None)
    retries = trials.retries(quantity)
    found = found.plus(retries.log_factor, retries.variance)
    if correction is None:
        return estimate_of_mean(found, values)
    return estimate_of_mean(found, values, tails=(correction.lower_tail, correction.upper_tail), shift=correction.shift)


def compare_cells(first: CellTrials, second: CellTrials, quantity: Quantity, noise: Noise) -> Comparison | None:
    """The ratio first ÷ second; None if one of them has no value."""
    trials = [each.trials(quantity) for each in (first, second)]
    if not all(trials):
        return None
    found = compare_on_hosts(
        trials[0],
        trials[1],
        spread=noise.spread,
        inflation=(noise.inflation(len(trials[0])), noise.inflation(len(trials[1]))),
    )
    if not (first.spread_is_known(quantity) and second.spread_is_known(quantity)):
        found = Comparison(ratio=found.ratio)
    retries = [each.retries(quantity) for each in (first, second)]
    shift = retries[0].log_factor - retries[1].log_factor
    return found.scaled(shift, sum(each.variance for each in retries)).with_interval()


def mean_of(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None
