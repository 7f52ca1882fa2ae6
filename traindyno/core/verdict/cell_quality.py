"""How well a cell's model learned: loss and perplexity of the last evaluation, and the time and cost to a target."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isfinite

from traindyno.core.costs.to_target import evaluated
from traindyno.core.measurement.loss_parity import are_draws_of_seeds
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.statistics.estimates import Estimate, estimate, estimate_share
from traindyno.core.suite.choices import Quality
from traindyno.core.suite.goal import QualityTarget
from traindyno.core.verdict.cell_trials import CellTrials, Noise, estimate_cell
from traindyno.core.verdict.quantity import SecondsToTarget, UsdToTarget


@dataclass(frozen=True, slots=True, kw_only=True)
class CellQuality:
    """``loss`` and ``perplexity`` are of the last evaluation of each measured trial.

    The rest is about the goal's target, None where it has none: ``reached`` of the measured trials reached it, ``best``
    is the best value of any evaluation, ``seconds`` and ``usd`` are the time and the cost until it was reached.
    Estimates have no interval if the trials are not draws of the seed.
    """

    loss: Estimate | None = None
    perplexity: Estimate | None = None
    reached: int | None = None
    best: float | None = None
    seconds: Estimate | None = None
    usd: Estimate | None = None


def measure_quality(trials: CellTrials, target: QualityTarget | None, noise: Noise) -> CellQuality:
    loss, perplexity = (_positive(trials.measured, quality) for quality in (Quality.LOSS, Quality.PERPLEXITY))
    if target is None:
        return CellQuality(loss=loss, perplexity=perplexity)
    to_target = SecondsToTarget(target=target)
    seen = [
        value
        for each in trials.measured
        for _, value in evaluated(each.measured.evaluations if each.measured else (), target)
        if isfinite(value)
    ]
    return CellQuality(
        loss=loss,
        perplexity=perplexity,
        reached=len(trials.values(to_target)),
        best=target.best(seen) if seen else None,
        seconds=estimate_cell(trials, to_target, noise),
        usd=estimate_cell(trials, UsdToTarget(target=target), noise),
    )


def estimate_accuracy(results: Sequence[RunResult]) -> Estimate | None:
    """The accuracy of the last evaluation, over the trials that have one."""
    shares = last_values(results, Quality.ACCURACY)
    return _for_these_seeds(results, estimate_share(shares)) if shares else None


def last_values(results: Sequence[RunResult], quality: Quality) -> list[float]:
    """One value for each trial whose last evaluation measured the quality."""
    evaluations = [each.measured.evaluations[-1] for each in results if each.measured and each.measured.evaluations]
    return [value for each in evaluations if (value := each.metrics.get(quality.value)) is not None]


def _positive(results: Sequence[RunResult], quality: Quality) -> Estimate | None:
    values = last_values(results, quality)
    if not values or not all(value > 0 and isfinite(value) for value in values):
        return None
    return _for_these_seeds(results, estimate(values))


def _for_these_seeds(results: Sequence[RunResult], found: Estimate) -> Estimate:
    return found if are_draws_of_seeds(results) else replace(found, variation=None, interval=None)
