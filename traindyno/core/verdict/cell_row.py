"""One row of the answer per cell: what its trials measured, with intervals, and their outcomes."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal

from traindyno.core.costs.full_run import reschedule
from traindyno.core.costs.hazard import Hazard, UnevenFaults
from traindyno.core.costs.prediction import Prediction, predict_run
from traindyno.core.costs.projection import paid_usd, project_run
from traindyno.core.measurement.loss_parity import seeds_of
from traindyno.core.measurement.step_parts import StepParts, mean_parts
from traindyno.core.slowness.step_shares import LoaderAdvice, advise_workers
from traindyno.core.statistics.estimates import Estimate
from traindyno.core.step_log.line import BATCH_SEARCH, RUN
from traindyno.core.suite.goal import QualityTarget
from traindyno.core.verdict.cell_quality import CellQuality, estimate_accuracy, measure_quality
from traindyno.core.verdict.cell_trials import CellTrials, Noise, estimate_cell, mean_of
from traindyno.core.verdict.found_batch import batch_of_cell, larger_may_fit
from traindyno.core.verdict.quantity import (
    SecondsToTarget,
    projected_billable_seconds,
    projected_instance_hours,
    projected_seconds,
    projected_usd,
    samples_per_second,
    steps_per_second,
    tokens_per_second,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CellRow:
    """One row of the answer. Means are over the measured trials; None is unknown.

    ``seconds``, ``usd`` and ``instance_hours`` are of the suite's whole workload, projected from each trial, with the
    cell's own failures and with interruptions at the rate of its capacity.
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
    #: Measured trials without a steady state; not those that ended at their target.
    unsteady_trials: int
    samples_per_second: Estimate | None
    tokens_per_second: Estimate | None
    #: Wall clock of the whole workload, with waiting and starting.
    seconds: Estimate | None
    #: Cost of the whole workload.
    usd: Estimate | None
    #: Instance hours of the whole workload.
    instance_hours: Estimate | None
    #: Part of ``seconds`` that is paid once.
    overhead_seconds: float | None
    #: Share of the devices' peak FLOPS.
    model_flops_utilization: float | None
    #: Share of the step time that waits for data.
    data_wait_share: float | None
    #: Largest peak of a device in any trial.
    peak_memory_bytes: int | None
    #: Mean wait for capacity.
    waiting_seconds: float | None
    #: Price of one instance hour.
    usd_per_instance_hour: Decimal | None
    #: Cost of all trials; None if that of any is unknown.
    spent_usd: Decimal | None
    #: First message of a trial, of those that were not measured before the others.
    message: str | None
    is_simulated: bool
    #: Trials that failed because of the cell.
    failed: int = 0
    #: Failed trials whose loss was not finite.
    diverged: int = 0
    #: The largest share of a busy host's CPU time that other work took; None if no measured trial had such a host.
    others_cpu_share: float | None = None
    #: Number of different sets of hosts; None if some are unknown.
    host_draws: int | None = None
    #: Accuracy of the evaluation, a share.
    accuracy: Estimate | None = None
    #: Time and cost to the goal's target.
    quality: CellQuality = field(default_factory=CellQuality)
    #: Part of ``seconds`` before training starts: waiting for capacity, starting, downloading.
    before_training_seconds: float | None = None
    #: Part of ``overhead_seconds`` that is training time.
    training_overhead_seconds: float | None = None
    #: Share of the training time that is billed.
    billable_share: float | None = None
    #: Share of the step time that checkpoints, evaluation and stalls take.
    recurring_share: float | None = None
    unsteady_reasons: tuple[str, ...] = ()
    #: What the trials can't decide about the cell, however many there are.
    undecided_reasons: tuple[str, ...] = ()
    #: Interval for one future run.
    prediction: Prediction | None = None
    steps_per_second: Estimate | None = None
    #: Mean time of the steps that a trial's rate is from.
    measured_seconds: float | None = None
    #: Seconds that SageMaker bills of each instance.
    billable_seconds: Estimate | None = None
    #: How often its capacity fails, as ``seconds``, ``usd`` and ``instance_hours`` include it.
    hazard: Hazard | None = None
    #: Width of what is unknown of the hazard's factor of the time, a logarithm.
    hazard_width: float = 0.0
    #: Faults of the service that may be its own; None where they are as on the other cells of its type.
    uneven_faults: UnevenFaults | None = None
    #: No trial shows what a checkpoint or an evaluation of the full run costs.
    misses_event: bool = False
    #: Trials that ended early because the cell can't win, and by which share they were slower at least.
    outpaced: int = 0
    least_behind: float | None = None
    #: What a step consists of.
    step_parts: StepParts | None = None
    #: What more loader workers would save, an estimate.
    loader_advice: LoaderAdvice | None = None
    #: The different seeds of the measured trials; None if one does not show its seed.
    seeds: tuple[int, ...] | None = None
    #: Batch per device that was found, ``NONE_FITS`` if no batch fits; None unless the cell searches it.
    found_batch: int | None = None
    #: No probe ran out of memory.
    larger_batch_may_fit: bool = False
    #: How scripts of its trials reduced the batch until it fitted: "32 became 8".
    reduced_batches: tuple[str, ...] = ()

    @property
    def repeats_a_seed(self) -> bool:
        """Whether several trials are one draw of what depends on the seed."""
        return self.trials > 1 and len(self.seeds or ()) < self.trials

    @property
    def usd_per_hour(self) -> Decimal | None:
        """The price of all instances together; None if it is unknown."""
        return None if self.usd_per_instance_hour is None else self.usd_per_instance_hour * self.instance_count

    @property
    def attempted(self) -> int:
        """Trials whose outcome the cell itself caused, success or failure."""
        return self.trials + self.failed


def build_rows(trials: Sequence[CellTrials], noise: Noise, target: QualityTarget | None = None) -> tuple[CellRow, ...]:
    """``target``: the quality of the goal, if it names one."""
    return tuple(_row(each, noise, target) for each in trials)


def _row(trials: CellTrials, noise: Noise, target: QualityTarget | None) -> CellRow:
    cell, measured, everything = trials.cell, trials.measured, (*trials.measured, *trials.others)
    runs = [each.measured for each in measured if each.measured]
    throughputs = [each.throughput for each in runs if each.throughput]
    memory = [each.measured.peak_memory_bytes or 0 for each in everything if each.measured]
    costs = [paid_usd(each) for each in everything]
    projections = [each for each in map(project_run, measured) if each]
    contended = [run.contention for run in runs if run.contention and run.is_contended]
    parts = mean_parts(run.step_parts for run in runs)
    is_built_in = any(RUN in each.environment.facts for each in measured if each.environment)
    batch = batch_of_cell(everything)
    facts = [each.environment.facts for each in everything if each.environment]
    reach = trials.extra(projected_seconds if target is None else SecondsToTarget(target=target)).interruptions
    row = CellRow(
        cell_id=cell.cell_id,
        label=cell.label,
        instance=cell.settings.instance,
        instance_count=cell.settings.instance_count,
        outcomes=dict(Counter(each.outcome.value for each in everything)),
        trials=len(measured),
        unsteady_trials=sum(each.is_unsteady for each in runs),
        samples_per_second=estimate_cell(trials, samples_per_second, noise),
        tokens_per_second=estimate_cell(trials, tokens_per_second, noise),
        seconds=estimate_cell(trials, projected_seconds, noise),
        usd=estimate_cell(trials, projected_usd, noise),
        instance_hours=estimate_cell(trials, projected_instance_hours, noise),
        overhead_seconds=mean_of([each.overhead_seconds for each in projections]),
        model_flops_utilization=mean_of([each.model_flops_utilization for each in throughputs]),
        data_wait_share=mean_of([each.data_wait_share for each in throughputs]),
        peak_memory_bytes=max(memory, default=0) or None,
        waiting_seconds=mean_of([each.phases_seconds.get("waiting") for each in everything]),
        usd_per_instance_hour=next((each.price.usd_per_instance_hour for each in everything), None),
        spent_usd=None if not costs or None in costs else sum((cost for cost in costs if cost is not None), Decimal(0)),
        message=next((each.message for each in (*trials.others, *measured) if each.message), None),
        is_simulated=any(each.is_simulated for each in everything),
        failed=trials.failed,
        diverged=trials.diverged,
        others_cpu_share=max((each.others_share for each in contended), default=None),
        host_draws=trials.host_draws,
        accuracy=estimate_accuracy(measured),
        quality=measure_quality(trials, target, noise),
        before_training_seconds=mean_of([each.before_training_seconds for each in projections]),
        training_overhead_seconds=mean_of([each.training_overhead_seconds for each in projections]),
        billable_share=mean_of([each.billable_share for each in projections]),
        recurring_share=mean_of([each.recurring_share for each in throughputs]),
        unsteady_reasons=tuple(dict.fromkeys(run.unsteady_reason for run in runs if run.unsteady_reason is not None)),
        undecided_reasons=trials.undecided.reasons,
        steps_per_second=estimate_cell(trials, steps_per_second, noise),
        measured_seconds=mean_of([each.seconds for each in throughputs]),
        billable_seconds=estimate_cell(trials, projected_billable_seconds, noise),
        hazard=trials.hazard,
        hazard_width=reach.high - reach.low,
        uneven_faults=trials.uneven_faults,
        misses_event=bool(measured) and all(reschedule(each) is None for each in measured),
        outpaced=len(trials.outpaced),
        least_behind=trials.least_behind,
        step_parts=parts,
        loader_advice=advise_workers(cell.settings, parts) if is_built_in else None,
        seeds=seeds_of(measured) if measured else None,
        found_batch=batch,
        larger_batch_may_fit=any(larger_may_fit(each) and batch_of_cell([each]) == batch for each in everything),
        reduced_batches=tuple(sorted({str(each[BATCH_SEARCH]) for each in facts if BATCH_SEARCH in each})),
    )
    return with_prediction(row, trials, noise)


def with_prediction(row: CellRow, trials: CellTrials, noise: Noise, shift: float = 0.0) -> CellRow:
    """The interval of one run around the row's means, with what its trials can't decide; a mean's is within it.

    ``shift``: of the logarithm, by how much the best of several cells looks better than it is.
    """
    seconds, usd = row.seconds, row.usd
    found = predict_run(
        trials.measured,
        undecided=trials.undecided.range.plus(trials.extra(projected_seconds).faults),
        others=trials.others,
        hazard=trials.hazard,
        trials=trials.trials(projected_seconds),
        host_spread=noise.spread_of(trials),
        inflation=noise.inflation(len(trials.measured)),
        means=(seconds.mean if seconds else None, usd.mean if usd else None),
        shift=shift,
    )
    if found is None:
        return replace(row, prediction=None)
    return replace(
        row,
        seconds=seconds and seconds.within(found.seconds),
        usd=usd and usd.within(found.usd),
        prediction=found,
    )
