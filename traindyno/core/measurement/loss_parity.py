"""Whether cells that should have the same losses have them: a speed-up counts only for the same
work.

Cells are compared if nothing that changes learning differs between them (global batch, learning
rate, optimizer, ...); precision, compiler, strategy and hardware may. Each trial's mean loss over
the second half of the samples that all of them saw is compared as a ratio: in pairs of equal seeds
if the cells have the same seeds, else by Welch's comparison. Trials of a cell that do not each show
a seed of their own are one draw.

Two cells agree if the ratio is shown to be within the tolerance (Schuirmann's two one-sided tests,
1987), and differ if it is shown to be outside, all comparisons of a group together (Bonferroni).
The spread from run to run comes from the trials: if a cell has one draw, from those of the other
cells. Without any of these none is found.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import log
from statistics import fmean, variance

from traindyno.core.measurement.change_points import LEAST_CHANGE
from traindyno.core.measurement.run_result import RunResult
from traindyno.figures.distributions import SIGNIFICANCE
from traindyno.figures.estimates import Comparison, Interval, compare, comparison_of
from traindyno.figures.log_means import LEAST_COUNT

TOLERANCE = LEAST_CHANGE


def seeds_of(results: Sequence[RunResult]) -> tuple[int, ...] | None:
    """The different seeds with which these runs trained, in order.

    None if one shows no seed, or is simulated.
    """
    seeds = {None if result.is_simulated else result.seed for result in results}
    return None if None in seeds else tuple(sorted(seed for seed in seeds if seed is not None))


def are_draws_of_seeds(results: Sequence[RunResult]) -> bool:
    """Whether each run shows a seed of its own."""
    return len(seeds_of(results) or ()) == len(results)


class ParityFinding(StrEnum):
    """Undecided: the spread is too wide.

    One trial, one seed: it is not known. Unknown: a loss was not logged.
    """

    AGREES = "agrees"
    DIFFERS = "differs"
    UNDECIDED = "undecided"
    ONE_TRIAL = "one_trial"
    ONE_SEED = "one_seed"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class LossSpread:
    """Scatter of the loss between trials.

    ``variance`` is the variance of the logarithm of a trial's loss, from run to run.
    """

    variance: float
    degrees_of_freedom: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LossParity:
    """Comparison of a cell's loss with the reference's.

    ``ratio`` is the cell's late loss ÷ the reference's; it is None if a loss is missing.
    """

    reference_cell_id: str
    cell_id: str
    finding: ParityFinding
    ratio: float | None
    interval: Interval | None
    tolerance: float


def check_loss_parities(
    cells: Sequence[Sequence[RunResult]], *, tolerance: float = TOLERANCE
) -> tuple[LossParity, ...]:
    """Each item holds the measured trials of one cell, at least one; the first is the reference of
    all others.
    """
    curves = [[_curve(result) for result in trials] for trials in cells]
    known = [curve for side in curves for curve in side if curve]
    end = min((max(curve) for curve in known), default=0)
    late = [[_late(curve, end) for curve in side] for side in curves]
    losses = list[dict[int | None, float]]()
    for trials, side in zip(cells, late, strict=True):
        means = [fmean(losses_of_run) for losses_of_run in side] if all(side) else []
        seeds = [result.seed for result in trials] if are_draws_of_seeds(trials) else [None]
        losses.append(
            dict(zip(seeds, means if len(seeds) > 1 else [fmean(means)], strict=True))
            if means
            else {}
        )
    spread = pool_spread([list(side.values()) for side in losses])
    parities = []
    for trials, own in zip(cells[1:], losses[1:], strict=True):
        comparison = _compare(own, losses[0], spread)
        finding = _judge(comparison, tolerance, SIGNIFICANCE / (len(cells) - 1))
        if finding is ParityFinding.ONE_TRIAL and min(len(trials), len(cells[0])) > 1:
            finding = ParityFinding.ONE_SEED
        parities.append(
            LossParity(
                reference_cell_id=cells[0][0].run.cell.cell_id,
                cell_id=trials[0].run.cell.cell_id,
                finding=finding,
                ratio=comparison.ratio if comparison else None,
                interval=comparison.interval if comparison else None,
                tolerance=tolerance,
            )
        )
    return tuple(parities)


def _compare(
    own_by_seed: Mapping[int | None, float],
    reference_by_seed: Mapping[int | None, float],
    spread: LossSpread | None,
) -> Comparison | None:
    own = list(own_by_seed.values())
    reference = list(reference_by_seed.values())
    if not own or not reference or min(*own, *reference) <= 0:
        return None
    if own_by_seed.keys() == reference_by_seed.keys() and len(own) > 1:
        ratios = [log(own_by_seed[seed] / reference_by_seed[seed]) for seed in own_by_seed]
        return comparison_of(
            fmean(ratios), variance(ratios) / len(ratios), len(ratios) - 1
        ).with_interval()
    if min(len(own), len(reference)) > 1:
        return compare(own, reference)
    difference = fmean([log(loss) for loss in own]) - fmean([log(loss) for loss in reference])
    if spread is None:
        return compare(own[:1], reference[:1])
    parts = spread.variance * (1 / len(own) + 1 / len(reference))
    return comparison_of(difference, parts, spread.degrees_of_freedom).with_interval()


def late_loss(result: RunResult) -> float | None:
    """The mean loss over the second half of the samples that the run saw; None if no loss is known
    there.
    """
    curve = _curve(result)
    late = _late(curve, max(curve, default=0))
    return fmean(late) if late else None


def pool_spread(losses: Iterable[Sequence[float]]) -> LossSpread | None:
    """Each item holds late losses of equal runs; None below two degrees of freedom."""
    usable = [[log(loss) for loss in side] for side in losses if len(side) > 1 and min(side) > 0]
    degrees = sum(len(side) - 1 for side in usable)
    if degrees < LEAST_COUNT - 1:
        return None
    return LossSpread(
        variance=sum(variance(side) * (len(side) - 1) for side in usable) / degrees,
        degrees_of_freedom=degrees,
    )


def _judge(comparison: Comparison | None, tolerance: float, share: float) -> ParityFinding:
    if comparison is None:
        return ParityFinding.UNKNOWN
    above = comparison.p_at_least(1 + tolerance)
    below = comparison.p_at_least(1 / (1 + tolerance))
    if above is None or below is None:
        return ParityFinding.ONE_TRIAL
    if above < SIGNIFICANCE and 1 - below < SIGNIFICANCE:
        return ParityFinding.AGREES
    return ParityFinding.DIFFERS if min(1 - above, below) < share / 2 else ParityFinding.UNDECIDED


def _curve(result: RunResult) -> Mapping[int, float]:
    """Loss by samples seen."""
    return (
        {point.samples: point.loss for point in result.measured.loss.finite_points}
        if result.measured
        else {}
    )


def _late(curve: Mapping[int, float], end: int) -> list[float]:
    return [loss for samples, loss in curve.items() if end / 2 < samples <= end]
