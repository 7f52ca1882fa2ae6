"""One row of the answer per cell: what its trials measured, with intervals, and their outcomes."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal

from traindyno.core.costs.full_run import reschedule
from traindyno.core.costs.hazard import Hazard, UnevenFaults
from traindyno.core.costs.prediction import Prediction, predict_run
from traindyno.core.costs.projection import paid_usd, project_run
from traindyno.core.documents.stored import AnyPart, Part, StoredPart, find_part
from traindyno.core.jobs.outcome import OWN_FAILURES, Outcome
from traindyno.core.run.record import QualityTarget
from traindyno.core.verdict.cell_quality import measure_quality
from traindyno.core.verdict.cell_trials import RATES, CellTrials, Noise, estimate_cell
from traindyno.core.verdict.found_batch import measure_batch
from traindyno.core.verdict.quantity import (
    Quantity,
    ToTarget,
    projected_billable_seconds,
    projected_instance_hours,
    projected_seconds,
    projected_usd,
    samples_per_second,
    steps_per_second,
    tokens_per_second,
)
from traindyno.core.verdict.slow_steps import measure_steps
from traindyno.core.verdict.trained_weights import measure_weights
from traindyno.figures.estimates import Estimate, mean_of
from traindyno.figures.hosts import STATED_PRIOR, HostSpread
from traindyno.figures.selection import Correction

#: The figures that each feature makes of a cell's trials. The estimates of the best cell are
#: corrected.
CELL_PARTS: tuple[
    Callable[[CellTrials, Noise, QualityTarget | None, Correction | None], StoredPart], ...
] = (
    measure_quality,
    lambda trials, *_: measure_batch((*trials.measured, *trials.others)),
    lambda trials, *_: measure_weights(trials.cell.settings, trials.measured),
    lambda trials, *_: measure_steps(trials.cell.settings, trials.measured),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CellTime:
    """Means of what the whole workload takes beside its steps, and of what its steps wait for."""

    #: Part of the time that is paid once.
    overhead_seconds: float | None = None
    #: Part of ``overhead_seconds`` that is training time.
    training_overhead_seconds: float | None = None
    #: Part of the time before training starts: waiting for capacity, starting, downloading.
    before_training_seconds: float | None = None
    waiting_seconds: float | None = None
    #: Share of the training time that is billed.
    billable_share: float | None = None
    #: Share of the step time that waits for data.
    data_wait_share: float | None = None
    #: Share of the step time that checkpoints, evaluation and stalls take.
    recurring_share: float | None = None
    #: Share of the devices' peak FLOPS.
    model_flops_utilization: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Steadiness:
    """How far the measured trials show the rate of the whole workload."""

    #: Mean time of the steps that a trial's rate is from.
    measured_seconds: float | None = None
    #: The same of the long run, whose figures replace those of the trials; None without one.
    long_run_seconds: float | None = None
    #: How its long run ended, if it was not measured; and by which factor it took longer than the
    #: trials, if it was, but its rival's was lost.
    lost_long_run: str | None = None
    unpaired_ratio: float | None = None
    #: Trials without a steady state; not those that ended at their target.
    unsteady_trials: int = 0
    unsteady_reasons: tuple[str, ...] = ()
    #: What the trials can't decide about the cell, however many there are.
    undecided_reasons: tuple[str, ...] = ()
    #: No trial shows what a checkpoint or an evaluation of the full run costs.
    misses_event: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CellHosts:
    """The hosts of the measured trials, and how often such hosts fail."""

    #: The spread between hosts that is assumed for the cell.
    spread: HostSpread = STATED_PRIOR
    #: Number of different sets of hosts; None if some are unknown.
    draws: int | None = None
    #: The largest share of a busy host's CPU time that other work took; None if no measured trial
    #: had such a host.
    others_cpu_share: float | None = None
    #: How often the capacity fails, as the row's time and cost include it.
    hazard: Hazard | None = None
    #: Width of what is unknown of the hazard's factor of the time, a logarithm.
    hazard_width: float = 0.0
    #: Faults of the service that may be the cell's own; None where they are as on the other cells
    #: of its type.
    uneven_faults: UnevenFaults | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CellRow:
    """One row of the answer. Means are over the measured trials; None is unknown.

    ``seconds``, ``usd`` and ``instance_hours`` are of the suite's whole workload, projected from
    each trial, with the cell's own failures and with interruptions at the rate of its capacity.
    """

    cell_id: str
    #: The settings in which the cell differs from others.
    label: str
    instance: str
    instance_count: int
    #: Outcome → number of trials.
    outcomes: Mapping[str, int]
    #: Number of measured trials.
    trials: int
    samples_per_second: Estimate | None
    tokens_per_second: Estimate | None
    steps_per_second: Estimate | None
    #: Wall clock of the whole workload, with waiting and starting.
    seconds: Estimate | None
    #: Cost of the whole workload.
    usd: Estimate | None
    #: Instance hours of the whole workload.
    instance_hours: Estimate | None
    #: Seconds that SageMaker bills of each instance.
    billable_seconds: Estimate | None
    #: Interval for one future run.
    prediction: Prediction | None
    #: Price of one instance hour.
    usd_per_instance_hour: Decimal | None
    #: Cost of all trials; None if that of any is unknown.
    spent_usd: Decimal | None
    #: First message of a trial, of those that were not measured before the others.
    message: str | None
    #: By which share its outpaced trials were slower at least, the largest one.
    least_behind: float | None
    time: CellTime = field(default_factory=CellTime)
    steadiness: Steadiness = field(default_factory=Steadiness)
    hosts: CellHosts = field(default_factory=CellHosts)
    parts: tuple[AnyPart, ...] = ()

    def part(self, kind: type[Part]) -> Part:
        return find_part(self.parts, kind) or kind()

    @property
    def failed(self) -> int:
        """Trials that failed because of the cell, those that diverged included."""
        found = sum(count for outcome, count in self.outcomes.items() if outcome in OWN_FAILURES)
        return found - (self.steadiness.lost_long_run == Outcome.TIMED_OUT)  # its limit's

    @property
    def diverged(self) -> int:
        return self.outcomes.get(Outcome.LOSS_DIVERGED, 0)

    @property
    def outpaced(self) -> int:
        """Trials that ended early because the cell can't win."""
        return self.outcomes.get(Outcome.OUTPACED, 0)

    @property
    def attempted(self) -> int:
        """Trials whose outcome the cell itself caused, success or failure."""
        return self.trials + self.failed

    @property
    def usd_per_hour(self) -> Decimal | None:
        """The price of all instances together; None if it is unknown."""
        return (
            None
            if self.usd_per_instance_hour is None
            else self.usd_per_instance_hour * self.instance_count
        )


def build_row(
    trials: CellTrials,
    noise: Noise,
    target: QualityTarget | None = None,
    correction: Correction | None = None,
) -> CellRow:
    """``target``: the quality of the goal, if it names one.

    ``correction``: of the best cell, for its selection.

    The interval of one run is around the row's means, with what its trials can't decide; a mean's
    is within it.
    """

    def estimate(quantity: Quantity) -> Estimate | None:
        own = correction.of_rate() if correction and quantity in RATES else correction
        return estimate_cell(trials, quantity, noise, own)

    cell = trials.cell
    measured = trials.measured
    everything = trials.results
    runs = [each.measured for each in measured if each.measured]
    long = trials.confirmed and trials.confirmed.measured
    rates = trials.rates
    costs = [paid_usd(each) for each in everything]
    projections = [each for each in map(project_run, measured) if each]
    contended = [run.contention for run in runs if run.contention and run.is_contended]
    spread = noise.spread_of(trials)
    scatter = trials.scatter(projected_seconds)
    reach = trials.extra(
        projected_seconds if target is None else ToTarget(target=target)
    ).interruptions
    seconds = estimate(projected_seconds)
    usd = estimate(projected_usd)
    prediction = predict_run(
        measured,
        undecided=trials.undecided.range.plus(trials.extra(projected_seconds).faults),
        others=trials.others,
        hazard=trials.hazard,
        trials=trials.trials(projected_seconds),
        host_spread=spread,
        # around one long run, or the mean of the trials
        inflation=len(measured) if long else noise.inflation(len(measured)),
        means=(seconds.mean if seconds else None, usd.mean if usd else None),
        shift=correction.shift if correction else 0.0,
        scatter=scatter.share if scatter.has_stalls else None,
    )
    once = mean_of(each.overhead_seconds for each in projections) or 0.0
    one_run = prediction.seconds if prediction else None

    def known(quantity: Quantity) -> Estimate | None:
        """No wider than the time of one run allows, as the time itself."""
        found = estimate(quantity)
        if found is None or one_run is None or seconds is None or one_run.low <= once:
            return found
        ends = [
            (seconds.mean - once) / (end - once) if quantity in RATES else end / seconds.mean
            for end in (one_run.low, one_run.high)
        ]
        low, high = sorted(found.mean * end for end in ends)
        return found.within(replace(one_run, low=low, high=high))

    return CellRow(
        cell_id=cell.cell_id,
        label=cell.label,
        instance=cell.settings.instance,
        instance_count=cell.settings.instance_count,
        outcomes=dict(Counter(each.outcome.value for each in everything)),
        trials=len(measured),
        samples_per_second=known(samples_per_second),
        tokens_per_second=known(tokens_per_second),
        steps_per_second=known(steps_per_second),
        seconds=seconds.within(prediction.seconds) if seconds and prediction else seconds,
        usd=usd.within(prediction.usd) if usd and prediction else usd,
        instance_hours=known(projected_instance_hours),
        billable_seconds=known(projected_billable_seconds),
        prediction=prediction,
        usd_per_instance_hour=next((each.price.usd_per_instance_hour for each in everything), None),
        spent_usd=None
        if not costs or None in costs
        else sum((cost for cost in costs if cost is not None), Decimal(0)),
        message=next((each.message for each in (*trials.others, *measured) if each.message), None),
        least_behind=trials.least_behind,
        time=CellTime(
            overhead_seconds=mean_of(each.overhead_seconds for each in projections),
            training_overhead_seconds=mean_of(
                each.training_overhead_seconds for each in projections
            ),
            before_training_seconds=mean_of(each.before_training_seconds for each in projections),
            waiting_seconds=mean_of(each.phases_seconds.get("waiting") for each in everything),
            billable_share=mean_of(each.billable_share for each in projections),
            data_wait_share=mean_of(rate.data_wait_share for rate in rates),
            recurring_share=mean_of(rate.recurring_share for rate in rates),
            model_flops_utilization=mean_of(rate.model_flops_utilization for rate in rates),
        ),
        steadiness=Steadiness(
            measured_seconds=mean_of(rate.seconds for rate in rates),
            long_run_seconds=long.throughput.seconds if long and long.throughput else None,
            lost_long_run=trials.lost_long_run,
            unpaired_ratio=trials.unpaired_ratio,
            unsteady_trials=sum(run.is_unsteady for run in runs),
            unsteady_reasons=tuple(
                dict.fromkeys(run.unsteady_reason for run in runs if run.unsteady_reason)
            ),
            undecided_reasons=trials.undecided.reasons,
            misses_event=bool(measured) and all(reschedule(each) is None for each in measured),
        ),
        hosts=CellHosts(
            spread=spread,
            draws=trials.host_draws,
            others_cpu_share=max((each.others_share for each in contended), default=None),
            hazard=trials.hazard,
            hazard_width=reach.high - reach.low,
            uneven_faults=trials.uneven_faults,
        ),
        parts=tuple(measure(trials, noise, target, correction) for measure in CELL_PARTS),
    )
