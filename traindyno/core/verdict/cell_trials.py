"""A cell with its trials: which of them count as measured, its success rate, and its hosts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import log
from statistics import fmean
from typing import TypeVar

from traindyno.core.costs.hazard import (
    Hazard,
    HazardKey,
    UnevenFaults,
    find_uneven_faults,
    hazard_key,
    observe_hazards,
)
from traindyno.core.instances.instance_types import LOCAL_PREFIX
from traindyno.core.jobs.outcome import OWN_FAILURES, SUCCESSES, Outcome
from traindyno.core.measurement.loss_parity import are_draws_of_seeds
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.measurement.throughput import Throughput
from traindyno.core.step_log.line import SCATTER
from traindyno.core.suite.cells import Cell
from traindyno.core.suite.runs import block_of
from traindyno.core.suite.suite import Suite
from traindyno.core.verdict.extra_time import ExtraTime, extra_time
from traindyno.core.verdict.quantity import (
    PAID_AGAIN,
    Quantity,
    ToTarget,
    resolution,
    samples_per_second,
    steps_per_second,
    tokens_per_second,
    training_seconds,
)
from traindyno.core.verdict.undecided import Undecided, find_undecided, range_between
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
    mean_of,
    variance,
)
from traindyno.figures.hosts import (
    ONE_MACHINE,
    STATED_PRIOR,
    STATED_PRIORS,
    HostClass,
    HostPriors,
    HostSpread,
    Trial,
    blocks_of,
    compare_on_hosts,
    draw_count,
    host_class,
    mean_over_hosts,
    one_more_run,
)
from traindyno.figures.in_job.run_scatter import (
    KNOWN_DEGREES,
    RunScatter,
    measured_scatter,
    run_scatter,
)
from traindyno.figures.selection import Correction

# What is undecided about the time per step is undecided about these, and inversely about rates.
PROJECTED = (*PAID_AGAIN, training_seconds)
# Standard errors of the difference of two runs, within which the long ones agree with the trials.
AGREES_WITHIN = 2
RATES = (samples_per_second, tokens_per_second, steps_per_second)
Found = TypeVar("Found", LogMean, Comparison)


@dataclass(frozen=True, slots=True, kw_only=True)
class CellTrials:
    """``measured`` ended successfully and measured a rate; ``others`` did not."""

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
    #: What was computed of it already, by quantity.
    _trials: dict[Quantity, tuple[Trial, ...]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    _extra: dict[Quantity, ExtraTime] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

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
    def versions(self) -> Mapping[str, str]:
        """The package versions that the first measured trial reported; empty if its log has
        none.
        """
        environment = self.measured[0].environment if self.measured else None
        found = environment.facts.get("versions") if environment else None
        return (
            {name: str(version) for name, version in found.items()}
            if isinstance(found, Mapping)
            else {}
        )

    def scatter(self, quantity: Quantity) -> RunScatter:
        """Assumed of its single runs, or measured before on their machine."""
        instance = self.cell.settings.instance
        environment = self.measured[0].environment if self.measured else None
        measured = measured_scatter(environment.facts.get(SCATTER)) if environment else None
        return run_scatter(instance, measured, has_target=isinstance(quantity, ToTarget))

    @property
    def rates(self) -> list[Throughput]:
        return [each.throughput for each in self.measured if each.throughput]

    @property
    def samples_per_step(self) -> int | None:
        """Samples of all ranks together; None if they are unknown or differ between trials."""
        found = {rate.samples_per_step for rate in self.rates}
        return next(iter(found)) if len(found) == 1 else None

    @property
    def host_draws(self) -> int | None:
        """How many draws of hosts the measured trials ran on; None if a trial's hosts are
        unknown.
        """
        trials = [Trial(value=1.0, hosts=hosts_of(result)) for result in self.measured]
        return (
            None
            if not trials or any(trial.hosts is None for trial in trials)
            else draw_count(trials)
        )

    @property
    def host_class(self) -> HostClass:
        return host_class(
            self.cell.settings.instance_count, mean_of(rate.data_wait_share for rate in self.rates)
        )

    @property
    def undecided(self) -> Undecided:
        known = self.measured if self.confirmed is None else (self.confirmed,)
        return find_undecided([each.measured for each in known if each.measured])

    @property
    def results(self) -> tuple[RunResult, ...]:
        confirmed = [self.confirmed] if self.confirmed else []
        return (*self.measured, *self.others, *confirmed, *self.unconfirmed)

    @property
    def lost_long_run(self) -> Outcome | None:
        """How its long run ended; None without one, or if it was measured."""
        long = [each for each in self.results if each.run.confirming_steps]
        return None if not long or any(map(is_measured, long)) else long[-1].outcome

    @property
    def unpaired_ratio(self) -> float | None:
        """The time of a step of its long run ÷ that of its trials, if its rival's was lost."""
        long = [each.throughput for each in self.unconfirmed if is_measured(each)]
        rates = [each.steps_per_second for each in self.rates]
        if not long or long[0] is None or not rates:
            return None
        return sum(rates) / len(rates) / long[0].steps_per_second

    def confirmed_mean(self, quantity: Quantity) -> float | None:
        """The logarithm of what its long run shows; None without one."""
        value = quantity(self.confirmed) if self.confirmed and _is_of_rate(quantity) else None
        return log(value) if value else None

    def spread_is_known(self, quantity: Quantity) -> bool:
        """False for what depends on the seed, if the measured trials are not draws of it."""
        return not isinstance(quantity, ToTarget) or are_draws_of_seeds(self.measured)

    def trials(self, quantity: Quantity) -> tuple[Trial, ...]:
        """The measured trials with a value of the quantity."""
        if quantity not in self._trials:
            found = ((quantity(result), result) for result in self.measured)
            self._trials[quantity] = tuple(
                self._trial(value, result)
                for value, result in found
                if value is not None and value > 0
            )
        return self._trials[quantity]

    def _trial(self, value: float, result: RunResult) -> Trial:
        """Its job is the attempt that measured it: the next one of a job that died is on other
        hosts.
        """
        last = result.attempts[-1] if result.attempts else None
        trial = Trial(value=value, hosts=hosts_of(result), block=block_of(result.run))
        if last is None or last.share is None:
            return trial
        return replace(
            trial, job=f"{result.run.execution_id} {last.job_name}", place=last.share.place or None
        )

    def least_variance(self, quantity: Quantity) -> float:
        """Least variance of the mean. Evaluations q apart can hide a spread of q / 2."""
        known = self.values(quantity)
        steps = [resolution(quantity, result) for result in self.measured]
        return max(steps, default=0.0) ** 2 / 4 / len(known) if known else 0.0

    def extra(self, quantity: Quantity) -> ExtraTime:
        """What the work takes beyond the measured time."""
        if quantity not in self._extra:
            self._extra[quantity] = extra_time(
                quantity, self.measured, self.others, self.hazard, self.uneven_faults
            )
        return self._extra[quantity]

    def values(self, quantity: Quantity) -> list[float]:
        return [trial.value for trial in self.trials(quantity)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """The model of all ``cells``: their means, the spread between hosts, and the correlation with
    the previous trial.

    ``largest_correlation`` is the upper end of what the trials make likely. ``local_spread``: of
    this machine's own types, whose trials are on one host unless executions are compared.
    """

    cells: Sequence[CellTrials] = ()
    spreads: HostPriors = field(default_factory=lambda: STATED_PRIORS)
    local_spread: HostSpread = ONE_MACHINE
    serial_correlation: float = 0.0
    largest_correlation: float = 0.0
    _means: dict[Quantity, dict[int, float]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def mean(self, trials: CellTrials, quantity: Quantity) -> float:
        """The logarithm of the cell's mean in the model; by its own trials for a cell that is not
        in it.
        """
        if quantity not in self._means:
            known = [each for each in self.cells if each.trials(quantity)]
            means = cell_means([each.trials(quantity) for each in known])
            self._means[quantity] = {
                id(each): mean for each, mean in zip(known, means, strict=True)
            }
        found = self._means[quantity].get(id(trials))
        return fmean(map(log, trials.values(quantity))) if found is None else found

    def level(self, trials: CellTrials, quantity: Quantity) -> float:
        """``mean`` with what the work takes beyond the measured time."""
        return self.mean(trials, quantity) + trials.extra(quantity).log_factor

    def spread_of(self, trials: CellTrials | None) -> HostSpread:
        if trials and trials.cell.settings.instance.startswith(LOCAL_PREFIX):
            return self.local_spread
        return self.spreads[trials.host_class] if trials else STATED_PRIOR

    def inflation(self, count: int) -> float:
        return (
            variance_inflation(self.serial_correlation, count) if self.serial_correlation else 1.0
        )

    def doubt(self, count: int) -> float:
        """The factor of the variance if trials are as correlated as is likely."""
        return max(1.0, variance_inflation(self.largest_correlation, count) / self.inflation(count))


def measure_noise(
    trials: Sequence[CellTrials], quantity: Quantity, priors: HostPriors = STATED_PRIORS
) -> Noise:
    left = residuals([blocks_of(each.trials(quantity)) for each in trials])
    return Noise(
        cells=trials,
        spreads=priors,
        serial_correlation=serial_correlation(left),
        largest_correlation=largest_correlation(left),
    )


def suite_trials(
    suite: Suite,
    cells: Sequence[Cell],
    results: Sequence[RunResult],
    *,
    hazards: Mapping[HazardKey, Hazard] | None = None,
) -> tuple[CellTrials, ...]:
    """The trials of each cell, in the order of the cells.

    A cell's trials are in the order of their numbers.

    ``hazards`` of None: as the results and the suite's expectations of spot say.
    """
    by_cell: dict[str, list[RunResult]] = {cell.cell_id: [] for cell in cells}
    for result in sorted(map(_with_divergence, results), key=lambda each: each.run.trial):
        by_cell.setdefault(result.run.cell.cell_id, []).append(result)
    known = observe_hazards(results, suite.pricing.spot) if hazards is None else hazards
    lost = bool(lost_long_runs(results))
    uneven = find_uneven_faults({cell_id: own for cell_id, own in by_cell.items() if own})
    return tuple(
        CellTrials(
            cell=cell,
            measured=tuple(
                result for result in own if is_measured(result) and not result.run.confirming_steps
            ),
            others=tuple(
                result for result in own if not is_measured(result) and not _is_too_long(result)
            ),
            confirmed=None
            if lost
            else next(
                (each for each in own if is_measured(each) and each.run.confirming_steps), None
            ),
            unconfirmed=tuple(
                each
                for each in own
                if _is_too_long(each) or (lost and is_measured(each) and each.run.confirming_steps)
            ),
            hazard=known.get(hazard_key(own[0])) if own else None,
            uneven_faults=uneven.get(cell.cell_id),
        )
        for cell in cells
        for own in (by_cell[cell.cell_id],)
    )


def lost_long_runs(results: Sequence[RunResult]) -> dict[str, list[RunResult]]:
    """Cell id → its long runs, of cells of which none was measured."""
    long: dict[str, list[RunResult]] = {}
    for each in results:
        if each.run.confirming_steps:
            long.setdefault(each.run.cell.cell_id, []).append(each)
    return {name: own for name, own in long.items() if not any(map(is_measured, own))}


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


def estimate_cell(
    trials: CellTrials, quantity: Quantity, noise: Noise, correction: Correction | None = None
) -> Estimate | None:
    """The estimate over the cell's hosts, or for the one set on which all trials ran.

    With a ``correction`` it is for other hosts too: the spread between them is assumed if there was
    one set only. Its interval includes what the trials can't decide. None if no trial has a value.
    """
    known = trials.trials(quantity)
    extra = trials.extra(quantity)
    if not known:
        return None
    values = [trial.value for trial in known]
    inflation = noise.inflation(len(known))
    is_for_its_host = correction is None and draw_count(known) == 1
    spread = noise.spread_of(trials)
    found = (
        log_mean(values, inflation=inflation)
        if is_for_its_host
        else mean_over_hosts(known, spread, inflation)
    )
    if not trials.spread_is_known(quantity):
        found = replace(found, variance=None, degrees_of_freedom=None)
    found = _moderated(found, [trials], quantity)
    found = found.known_to(trials.least_variance(quantity))
    mean = trials.confirmed_mean(quantity)
    if mean is not None and found.variance is not None:
        # one run, on whatever hosts it has
        found = replace(found, variance=one_more_run(known, spread, inflation)[0])
    mean = noise.mean(trials, quantity) if mean is None else mean
    found = replace(found, mean=mean).plus(extra.log_factor, extra.variance)
    undecided = trials.undecided if _is_of_rate(quantity) else Undecided()
    tails = (correction.lower_tail, correction.upper_tail) if correction else None
    reach = extra.range.plus(_range_of(undecided.range, quantity))
    return estimate_of_mean(found, values, tails=tails, undecided=reach)


def compare_cells(
    first: CellTrials, second: CellTrials, quantity: Quantity, noise: Noise, pool: Pool = NO_POOL
) -> Comparison | None:
    """The ratio first ÷ second; None if one of them has no value.

    ``pool``: the values of all cells by block, which tell what trials of one block share.
    """
    trials = [each.trials(quantity) for each in (first, second)]
    extra, other = (each.extra(quantity) for each in (first, second))
    if not all(trials):
        return None
    found = compare_on_hosts(
        trials[0],
        trials[1],
        pool=pool,
        spreads=(noise.spread_of(first), noise.spread_of(second)),
        inflation=(noise.inflation(len(trials[0])), noise.inflation(len(trials[1]))),
    )
    if not (first.spread_is_known(quantity) and second.spread_is_known(quantity)):
        found = Comparison(ratio=found.ratio, host_variance=found.host_variance)
    found = _moderated(found, [first, second], quantity)
    found = found.at(noise.mean(first, quantity) - noise.mean(second, quantity))
    long, other_long = (each.confirmed_mean(quantity) for each in (first, second))
    if long is None or other_long is None:  # trials are compared with trials
        first, second = (replace(each, confirmed=None) for each in (first, second))
    else:
        found = _of_long_runs(found, long - other_long, trials)
    found = found.known_to(first.least_variance(quantity) + second.least_variance(quantity))
    found = found.scaled(extra.log_factor - other.log_factor, extra.variance + other.variance)
    reach = extra.range_against(other)
    if not _is_of_rate(quantity):
        return found.with_range(reach).with_interval()
    reach = reach.plus(_range_of(range_between(first.undecided, second.undecided), quantity))
    return found.with_range(reach).with_interval()


def _moderated(found: Found, cells: Sequence[CellTrials], quantity: Quantity) -> Found:
    """Where other work may stall runs, a few that agree by chance are not believed to scatter so
    little.
    """
    if not any(each.scatter(quantity).has_stalls for each in cells):
        return found
    known = sum(each.scatter(quantity).share ** 2 / len(each.values(quantity)) for each in cells)
    return found.moderated(known, KNOWN_DEGREES)


def _of_long_runs(
    found: Comparison, difference: float, trials: Sequence[Sequence[Trial]]
) -> Comparison:
    """That of the trials, if one long run of each cell agrees with it: several trials know more of
    the ratio. Otherwise that of the long runs, with the spread of single trials.
    """
    spreads = [variance([log(trial.value) for trial in own]) for own in trials if len(own) > 1]
    if found.standard_error is None:
        known = (
            comparison_of(difference, 2 * max(spreads), max(map(len, trials)) - 1)
            if spreads
            else found
        )
        return known.at(difference)
    of_one = found.inflated(min(map(len, trials)))
    apart = abs(difference - log(found.ratio))
    return (
        found if apart <= AGREES_WITHIN * (of_one.standard_error or 0.0) else of_one.at(difference)
    )


def _is_of_rate(quantity: Quantity) -> bool:
    return quantity in PROJECTED or quantity in RATES


def _range_of(found: Range, quantity: Quantity) -> Range:
    """Range of a quantity, from the range of the time per step."""
    if quantity in PROJECTED:
        return found
    return found.inverse() if quantity in RATES else NO_RANGE
