"""The figures of other cells beside the recommended one's: its own by the ratio of the two.

A comparison leaves out what rounds, jobs and places in them did to the trials. A plain mean of a cell's trials holds
it, so that a table of means may have another order than the comparisons.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import exp

from traindyno.core.costs.prediction import Prediction
from traindyno.core.statistics.estimates import Estimate, Interval
from traindyno.core.statistics.hosts import Trial
from traindyno.core.verdict.cell_row import CellRow
from traindyno.core.verdict.cell_trials import CellTrials
from traindyno.core.verdict.quantity import Quantity
from traindyno.core.verdict.recommendation import Recommendation


def scaled_row(row: CellRow, factor: float) -> CellRow:
    """With ``factor`` times its time and cost, and less of its rates."""
    return replace(
        row,
        seconds=_times(row.seconds, factor),
        usd=_times(row.usd, factor),
        prediction=_predicted(row.prediction, factor),
        instance_hours=_times(row.instance_hours, factor),
        samples_per_second=_times(row.samples_per_second, 1 / factor),
        tokens_per_second=_times(row.tokens_per_second, 1 / factor),
        steps_per_second=_times(row.steps_per_second, 1 / factor),
        billable_seconds=_times(row.billable_seconds, factor),
        model_flops_utilization=row.model_flops_utilization and row.model_flops_utilization / factor,
        quality=replace(row.quality, seconds=_times(row.quality.seconds, factor), usd=_times(row.quality.usd, factor)),
    )


def ratios_of_dropped(
    found: Recommendation, dropped: Iterable[CellTrials], compared: Sequence[CellTrials], quantity: Quantity
) -> dict[str, float]:
    """Cell id → the recommended cell ÷ it, of cells that a race left out after one run.

    By that run and the best one beside it in its job, or else the best first run, of a cell that was compared.
    """
    ratios = {found.best.cell.cell_id: 1.0} | {rival.cell_id: rival.comparison.ratio for rival in found.rivals}
    pairs = ((each, _beside(each, compared, quantity)) for each in dropped)
    return {
        each.cell.cell_id: ratios[other.cell.cell_id] * _ratio(other, each, run, quantity)
        for each, (other, run) in pairs
    }


def _beside(dropped: CellTrials, compared: Sequence[CellTrials], quantity: Quantity) -> tuple[CellTrials, Trial]:
    own = dropped.trials(quantity)[0]
    runs = [(each, run) for each in compared for run in each.trials(quantity) if own.job and run.job == own.job]
    firsts = [(each, each.trials(quantity)[0]) for each in compared]
    return min(runs or firsts, key=lambda pair: pair[1].value)


def _ratio(first: CellTrials, second: CellTrials, run: Trial, quantity: Quantity) -> float:
    extra, other = first.extra(quantity), second.extra(quantity)
    assert extra is not None, "a cell that is compared has a figure"
    assert other is not None, "a cell without a figure is refused"
    return run.value / second.trials(quantity)[0].value * exp(extra.against(other)[0])


def _times(estimate: Estimate | None, factor: float) -> Estimate | None:
    if estimate is None:
        return None
    return replace(estimate, mean=estimate.mean * factor, interval=_interval_times(estimate.interval, factor))


def _interval_times(interval: Interval | None, factor: float) -> Interval | None:
    return interval and replace(interval, low=interval.low * factor, high=interval.high * factor)


def _predicted(prediction: Prediction | None, factor: float) -> Prediction | None:
    if prediction is None:
        return None
    seconds, usd = (_interval_times(each, factor) for each in (prediction.seconds, prediction.usd))
    return replace(prediction, seconds=seconds, usd=usd)
