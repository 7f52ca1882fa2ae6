"""The row of a cell, from its runs and the model of all trials."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import isfinite

from traindyno.core.costs.full_run import reschedule
from traindyno.core.costs.prediction import Prediction, predict_run
from traindyno.core.costs.prices import sum_known
from traindyno.core.costs.projection import Projection, paid_usd, project_run
from traindyno.core.costs.to_target import evaluated
from traindyno.core.measurement.loss_parity import are_draws_of_seeds
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.run.record import QualityTarget
from traindyno.core.suite.choices import Quality
from traindyno.core.verdict.cell_row import CellHosts, CellQuality, CellRow, CellTime, Steadiness
from traindyno.core.verdict.cell_runs import CellRuns
from traindyno.core.verdict.found_batch import measure_batch
from traindyno.core.verdict.slow_steps import measure_steps
from traindyno.core.verdict.trained_weights import measure_weights
from traindyno.figures.estimates import Correction, Estimate, estimate, estimate_share, mean_of
from traindyno.figures.model import TrialModel
from traindyno.figures.table import PAID_AGAIN, RATES, FigureColumn


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
    estimates = {
        column: model.estimate(runs.key, column, correction) for column in (*RATES, *PAID_AGAIN)
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
        message=next(filter(None, map(_message, (*runs.others, *runs.measured))), None),
        least_behind=runs.least_behind,
        time=_time(runs, projections),
        steadiness=_steadiness(runs, model),
        hosts=_hosts(runs, model, target),
        parts=(
            _quality(runs, model, target, correction),
            measure_batch((*runs.measured, *runs.others)),
            measure_weights(runs.cell.settings, runs.measured),
            measure_steps(runs.cell.settings, runs.measured),
        ),
    )


def _predict(
    runs: CellRuns,
    model: TrialModel,
    estimates: Mapping[FigureColumn, Estimate | None],
    correction: Correction | None,
) -> Prediction | None:
    time = model.figures.of(runs.key, FigureColumn.SECONDS)
    facts = time.facts
    count = len(runs.measured)
    means = [
        estimate.mean if estimate else None
        for estimate in (estimates[FigureColumn.SECONDS], estimates[FigureColumn.USD])
    ]
    return predict_run(
        runs.measured,
        undecided=facts.decisive.range.plus(time.extra.faults).plus(
            model.place_range(runs.key, FigureColumn.SECONDS)
        ),
        others=runs.others,
        hazard=runs.hazard,
        trials=time.trials,
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


def _message(result: RunResult) -> str | None:
    """Its own, or what the steps of a run without a rate lack."""
    measured = result.measured
    if result.message or measured is None or measured.throughput or measured.ended_at_target:
        return result.message
    return measured.steady_state.reason


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
    time = model.figures.of(runs.key, column)
    reach = time.extra.interruptions
    return CellHosts(
        spread=time.facts.hosts,
        draws=runs.host_draws,
        others_cpu_share=max((contention.others_share for contention in contended), default=None),
        hazard=runs.hazard,
        hazard_width=reach.high - reach.low,
        uneven_faults=runs.uneven_faults,
    )


def _quality(
    runs: CellRuns,
    model: TrialModel,
    target: QualityTarget | None,
    correction: Correction | None,
) -> CellQuality:
    measured = runs.measured
    is_of_seeds = are_draws_of_seeds(measured)

    def last(quality: Quality) -> Estimate | None:
        reported = (result.last_value(quality) for result in measured)
        values = [value for value in reported if value is not None]
        is_share = quality is Quality.ACCURACY
        if not values or not (is_share or all(value > 0 and isfinite(value) for value in values)):
            return None
        mean = estimate_share(values) if is_share else estimate(values)
        return mean if is_of_seeds else replace(mean, variation=None, interval=None)

    known = CellQuality(
        repeats_a_seed=len(measured) > 1 and not is_of_seeds,
        accuracy=last(Quality.ACCURACY),
        loss=last(Quality.LOSS),
        perplexity=last(Quality.PERPLEXITY),
    )
    if target is None:
        return known
    seen = [
        value
        for result in measured
        for _, value in evaluated(result, target.quality)
        if isfinite(value)
    ]
    return replace(
        known,
        reached=len(model.figures.of(runs.key, FigureColumn.SECONDS_TO_TARGET).trials),
        best=target.best(seen) if seen else None,
        seconds=model.estimate(runs.key, FigureColumn.SECONDS_TO_TARGET, correction),
        usd=model.estimate(runs.key, FigureColumn.USD_TO_TARGET, correction),
    )
