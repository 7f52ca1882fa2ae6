"""One row of the answer per cell: what its trials measured, with intervals, and their outcomes."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal

from traindyno.core.costs.full_run import reschedule
from traindyno.core.costs.hazard import Hazard, UnevenFaults
from traindyno.core.costs.prediction import Prediction, predict_run
from traindyno.core.costs.prices import sum_known
from traindyno.core.costs.projection import Projection, paid_usd, project_run
from traindyno.core.documents.stored import AnyPart, Part, StoredPart, find_part
from traindyno.core.jobs.outcome import OWN_FAILURES, Outcome
from traindyno.core.run.record import QualityTarget
from traindyno.core.verdict.cell_quality import measure_quality
from traindyno.core.verdict.cell_runs import CellRuns
from traindyno.core.verdict.found_batch import measure_batch
from traindyno.core.verdict.slow_steps import measure_steps
from traindyno.core.verdict.trained_weights import measure_weights
from traindyno.figures.estimates import Estimate, mean_of
from traindyno.figures.hosts import STATED_PRIOR, HostSpread
from traindyno.figures.model import TrialModel
from traindyno.figures.selection import Correction
from traindyno.figures.table import PAID_AGAIN, RATES, FigureColumn

#: The figures that each feature makes of a cell's trials. The estimates of the best cell are
#: corrected.
CELL_PARTS: tuple[
    Callable[[CellRuns, TrialModel, QualityTarget | None, Correction | None], StoredPart], ...
] = (
    measure_quality,
    lambda runs, *_: measure_batch((*runs.measured, *runs.others)),
    lambda runs, *_: measure_weights(runs.cell.settings, runs.measured),
    lambda runs, *_: measure_steps(runs.cell.settings, runs.measured),
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
        failures = sum(count for outcome, count in self.outcomes.items() if outcome in OWN_FAILURES)
        return failures - (self.steadiness.lost_long_run == Outcome.TIMED_OUT)  # its limit's

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
    runs: CellRuns,
    model: TrialModel,
    target: QualityTarget | None = None,
    correction: Correction | None = None,
) -> CellRow:
    """The row of a cell. The interval of one run is around the row's means, with what its trials
    can't decide; a mean's is within it.

    Args:
        runs: of the cell.
        model: of all cells.
        target: the quality of the goal, if it names one.
        correction: of the best cell, for its selection.
    """
    results = runs.results
    projections = [projection for projection in map(project_run, runs.measured) if projection]
    of_rate = correction.of_rate() if correction else None
    estimates = {
        column: model.estimate(runs.key, column, of_rate if column in RATES else correction)
        for column in (*RATES, *PAID_AGAIN)
    }
    prediction = _predict(runs, model, estimates, correction)
    if prediction is not None:
        once = mean_of(projection.overhead_seconds for projection in projections) or 0.0
        estimates = _within_one_run(estimates, prediction, once)
    return CellRow(
        cell_id=runs.cell.cell_id,
        label=runs.cell.label,
        instance=runs.cell.settings.instance,
        instance_count=runs.cell.settings.instance_count,
        outcomes=dict(Counter(result.outcome.value for result in results)),
        trials=len(runs.measured),
        samples_per_second=estimates[FigureColumn.SAMPLES_PER_SECOND],
        tokens_per_second=estimates[FigureColumn.TOKENS_PER_SECOND],
        steps_per_second=estimates[FigureColumn.STEPS_PER_SECOND],
        seconds=estimates[FigureColumn.SECONDS],
        usd=estimates[FigureColumn.USD],
        instance_hours=estimates[FigureColumn.INSTANCE_HOURS],
        billable_seconds=estimates[FigureColumn.BILLABLE_SECONDS],
        prediction=prediction,
        usd_per_instance_hour=next(
            (result.price.usd_per_instance_hour for result in results), None
        ),
        spent_usd=sum_known([paid_usd(result) for result in results]),
        message=next(
            (result.message for result in (*runs.others, *runs.measured) if result.message), None
        ),
        least_behind=runs.least_behind,
        time=_time(runs, projections),
        steadiness=_steadiness(runs, model),
        hosts=_hosts(runs, model, target),
        parts=tuple(measure(runs, model, target, correction) for measure in CELL_PARTS),
    )


def _predict(
    runs: CellRuns,
    model: TrialModel,
    estimates: Mapping[FigureColumn, Estimate | None],
    correction: Correction | None,
) -> Prediction | None:
    figures = model.figures
    facts = figures.cells[runs.key]
    count = len(runs.measured)
    faults = figures.extra(runs.key, FigureColumn.SECONDS).faults
    means = [
        estimate.mean if estimate else None
        for estimate in (estimates[FigureColumn.SECONDS], estimates[FigureColumn.USD])
    ]
    return predict_run(
        runs.measured,
        undecided=facts.decisive.range.plus(faults),
        others=runs.others,
        hazard=runs.hazard,
        trials=figures.trials(runs.key, FigureColumn.SECONDS),
        host_spread=facts.hosts,
        # around one long run, or the mean of the trials
        inflation=count if facts.long_run else model.inflation(count),
        means=(means[0], means[1]),
        shift=correction.shift if correction else 0.0,
        scatter=facts.scatter.share if facts.scatter.has_stalls else None,
    )


def _within_one_run(
    estimates: Mapping[FigureColumn, Estimate | None], prediction: Prediction, once: float
) -> dict[FigureColumn, Estimate | None]:
    """No interval is wider than one run allows: time and cost by their own prediction, others by
    that of the time less what is paid ``once``.
    """
    within = {
        FigureColumn.SECONDS: prediction.seconds,
        FigureColumn.USD: prediction.usd,
    }
    seconds = estimates[FigureColumn.SECONDS]
    one_run = prediction.seconds
    if seconds is not None and one_run is not None and one_run.low > once:
        for column, estimate in estimates.items():
            if estimate is None or column in within:
                continue
            ends = [
                (seconds.mean - once) / (end - once) if column in RATES else end / seconds.mean
                for end in (one_run.low, one_run.high)
            ]
            low, high = sorted(estimate.mean * end for end in ends)
            within[column] = replace(one_run, low=low, high=high)
    return {
        column: estimate.within(within.get(column)) if estimate else None
        for column, estimate in estimates.items()
    }


def _time(runs: CellRuns, projections: Sequence[Projection]) -> CellTime:
    rates = runs.rates
    return CellTime(
        overhead_seconds=mean_of(projection.overhead_seconds for projection in projections),
        training_overhead_seconds=mean_of(
            projection.training_overhead_seconds for projection in projections
        ),
        before_training_seconds=mean_of(
            projection.before_training_seconds for projection in projections
        ),
        waiting_seconds=mean_of(result.phases_seconds.get("waiting") for result in runs.results),
        billable_share=mean_of(projection.billable_share for projection in projections),
        data_wait_share=mean_of(rate.data_wait_share for rate in rates),
        recurring_share=mean_of(rate.recurring_share for rate in rates),
        model_flops_utilization=mean_of(rate.model_flops_utilization for rate in rates),
    )


def _steadiness(runs: CellRuns, model: TrialModel) -> Steadiness:
    measured = [result.measured for result in runs.measured if result.measured]
    long = runs.confirmed.throughput if runs.confirmed else None
    reasons = (run.unsteady_reason for run in measured)
    return Steadiness(
        measured_seconds=mean_of(rate.seconds for rate in runs.rates),
        long_run_seconds=long.seconds if long else None,
        lost_long_run=runs.lost_long_run,
        unpaired_ratio=runs.unpaired_ratio,
        unsteady_trials=sum(run.is_unsteady for run in measured),
        unsteady_reasons=tuple(dict.fromkeys(reason for reason in reasons if reason)),
        undecided_reasons=model.figures.cells[runs.key].decisive.reasons,
        misses_event=bool(runs.measured)
        and all(reschedule(result) is None for result in runs.measured),
    )


def _hosts(runs: CellRuns, model: TrialModel, target: QualityTarget | None) -> CellHosts:
    measured = [result.measured for result in runs.measured if result.measured]
    contended = [run.contention for run in measured if run.contention and run.is_contended]
    column = FigureColumn.SECONDS if target is None else FigureColumn.SECONDS_TO_TARGET
    reach = model.figures.extra(runs.key, column).interruptions
    return CellHosts(
        spread=model.figures.cells[runs.key].hosts,
        draws=runs.host_draws,
        others_cpu_share=max((contention.others_share for contention in contended), default=None),
        hazard=runs.hazard,
        hazard_width=reach.high - reach.low,
        uneven_faults=runs.uneven_faults,
    )
