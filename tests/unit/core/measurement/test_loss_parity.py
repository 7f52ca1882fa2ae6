import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from math import exp, log, sqrt

import pytest

from tests.unit.run_samples import completed_result, make_cell, remeasured
from traindyno.core.measurement.loss_parity import (
    LossParity,
    ParityFinding,
    check_loss_parities,
    late_loss,
    pool_spread,
)
from traindyno.core.measurement.run_result import RunResult

Loss = Callable[[int], float | None]
FIRST = make_cell("0000000a", "ddp")
SECOND = make_cell("0000000b", "fsdp")
TEMPLATE = completed_result(FIRST, 1)


def noisy(factor: float, *, seed: int, spread: float = 0.01) -> Loss:
    source = random.Random(seed)
    return lambda step: factor * (2 + 2 / (1 + step)) * source.lognormvariate(0, spread)


def one(cell_is_first: bool, loss: Loss, trial: int = 1) -> RunResult:
    return completed_result(FIRST if cell_is_first else SECOND, trial, loss=loss)


def check_loss_parity(reference: list[RunResult], other: list[RunResult]) -> LossParity:
    (parity,) = check_loss_parities([reference, other])
    return parity


def templates(levels: Sequence[float]) -> list[RunResult]:
    """A cell's runs, each with a late loss and a seed of its own."""
    return [replace(template(level), seed=seed) for seed, level in enumerate(levels)]


def template(level: float) -> RunResult:
    """A run whose late loss is ``level``."""
    assert TEMPLATE.measured is not None
    points = tuple(replace(point, loss=level) for point in TEMPLATE.measured.loss.points)
    return remeasured(TEMPLATE, points=points)


@pytest.mark.parametrize(
    ("factor", "finding"), [(1.0, ParityFinding.AGREES), (1.1, ParityFinding.DIFFERS)]
)
def test_curves_of_the_same_work_agree_and_a_loss_higher_by_a_tenth_differs(
    factor: float, finding: ParityFinding
) -> None:
    reference = [one(True, noisy(1.0, seed=seed), seed) for seed in (1, 2, 3)]
    other = [one(False, noisy(factor, seed=seed), seed) for seed in (4, 5, 6)]
    parity = check_loss_parity(reference, other)
    assert parity.finding is finding
    assert parity.ratio == pytest.approx(factor, abs=0.01)


def test_noise_wider_than_the_tolerance_decides_nothing() -> None:
    assert (
        check_loss_parity(templates([2.0, 2.4]), templates([2.1, 2.5])).finding
        is ParityFinding.UNDECIDED
    )


def test_one_trial_of_each_cell_can_not_be_told() -> None:
    results = [one(True, noisy(1.0, seed=1))], [one(False, noisy(1.3, seed=2))]
    parity = check_loss_parity(*results)
    assert (parity.finding, parity.interval) == (ParityFinding.ONE_TRIAL, None)
    assert parity.ratio == pytest.approx(1.3, abs=0.02)


def test_the_other_cells_tell_the_spread_of_a_cell_with_one_trial() -> None:
    single = [one(False, noisy(1.3, seed=2))]
    (parity,) = check_loss_parities(
        [[one(True, noisy(1.0, seed=seed), seed) for seed in (3, 4, 5)], single]
    )
    assert parity.finding is ParityFinding.DIFFERS


def test_trials_of_equal_seeds_are_compared_in_pairs() -> None:
    """The losses scatter by 10 % between seeds, and by 0.1 % between the cells at one seed."""
    levels = [2.0, 2.2, 1.8, 2.1, 1.9]
    other = [
        level * factor
        for level, factor in zip(levels, (1.0, 1.001, 0.999, 1.0, 1.001), strict=True)
    ]
    alike = check_loss_parity(templates(levels), templates(other))
    assert alike.finding is ParityFinding.AGREES
    # logarithms 0, 0.0009995, -0.0010005, 0, 0.0009995: mean 0.0002, deviation 0.00083645; t(0.975,
    # 4) = 2.776445
    assert alike.interval is not None
    assert log(alike.interval.high / (alike.ratio or 0)) == pytest.approx(
        2.776445 * 0.00083645 / sqrt(5), rel=1e-3
    )
    worse = check_loss_parity(templates(levels), templates([level * 1.03 for level in other]))
    assert worse.finding is ParityFinding.DIFFERS
    assert (
        check_loss_parity(templates(levels[:2]), templates(other[:2])).finding
        is ParityFinding.AGREES
    )
    # other seeds: Welch's comparison
    shifted = [replace(loss, seed=(loss.seed or 0) + 10) for loss in templates(other)]
    assert check_loss_parity(templates(levels), shifted).finding is ParityFinding.UNDECIDED


@pytest.mark.parametrize("seeds", [(0, 0, 0), (None, None, None), (0, 1, None)])
def test_trials_of_one_seed_show_nothing_for_other_seeds(seeds: tuple[int | None, ...]) -> None:
    """The losses of a cell are equal in all trials, and those of the cells differ by 10 %."""
    first, second = (
        [replace(template(level), seed=seed) for seed in seeds] for level in (2.0, 2.2)
    )
    parity = check_loss_parity(first, second)
    assert (parity.finding, parity.interval) == (ParityFinding.ONE_SEED, None)
    assert parity.ratio == pytest.approx(1.1)


def test_only_the_later_half_is_compared() -> None:
    # an early lag that has closed by half of the samples does not count
    parity = check_loss_parity(
        [one(True, lambda _: 2.0)], [one(False, lambda step: 4.0 if step < 30 else 2.0)]
    )
    assert parity.ratio == pytest.approx(1.0)


def test_without_losses_parity_is_unknown() -> None:
    parity = check_loss_parity([one(True, lambda _: None)], [one(False, noisy(1.0, seed=1))])
    assert (parity.finding, parity.ratio) == (ParityFinding.UNKNOWN, None)


def test_the_spread_of_several_cells_is_pooled_by_degrees_of_freedom() -> None:
    # logs 0 and 0.2: variance 0.02, 1 degree; 0, 0.1 and 0.2: variance 0.01, 2 degrees: (0.02 +
    # 0.02) / 3
    spread = pool_spread([[1.0, exp(0.2)], [1.0, exp(0.1), exp(0.2)], [5.0], []])
    assert spread is not None
    assert spread.variance == pytest.approx(0.04 / 3)
    assert spread.degrees_of_freedom == 3
    assert pool_spread([[1.0, exp(0.2)]]) is None
    # a loss of 0 has no logarithm
    assert pool_spread([[1.0, exp(0.2)], [0.0, 1.0, 2.0]]) is None


def test_a_loss_of_nought_or_below_has_no_ratio() -> None:
    for level in (0.0, -1.0):
        (parity,) = check_loss_parities([[template(level)], [template(2.0)]])
        assert parity.finding is ParityFinding.UNKNOWN
        (parity,) = check_loss_parities([[template(2.0)], [template(level)]])
        assert parity.finding is ParityFinding.UNKNOWN


def test_the_late_loss_is_the_mean_of_the_second_half_of_the_samples() -> None:
    curve = one(True, lambda step: 4.0 if step < 30 else 2.0)
    assert late_loss(curve) == pytest.approx(2.0)
    assert late_loss(one(True, lambda _: None)) is None


def test_several_cells_share_the_significance_of_a_difference() -> None:
    # logarithms log(1.1) ± 0.03632: t = (log(1.1) - log(1.02)) / (0.03632 sqrt(4 / 3) / 2) = 3.6, p
    # one-sided 0.0184
    reference = templates([2.0] * 4)
    other = templates([2.2 * exp(part) for part in (0.03632, -0.03632) * 2])
    assert check_loss_parity(reference, other).finding is ParityFinding.DIFFERS
    shared = check_loss_parities([reference, other, reference])
    assert shared[0].finding is ParityFinding.UNDECIDED
    assert check_loss_parity(other, reference).finding is ParityFinding.DIFFERS


def test_losses_agree_within_the_given_tolerance() -> None:
    reference = templates([2.0] * 3)
    for level, tolerance, finding in (
        (2.03, 0.05, ParityFinding.AGREES),
        (1.97, 0.05, ParityFinding.AGREES),
        (2.03, 0.005, ParityFinding.DIFFERS),
        (1.97, 0.005, ParityFinding.DIFFERS),
        (2.03, 0.015, ParityFinding.UNDECIDED),
    ):
        other = templates([level, level * 1.0005, level / 1.0005])
        (parity,) = check_loss_parities([reference, other], tolerance=tolerance)
        assert (level, parity.finding, parity.tolerance) == (level, finding, tolerance)
