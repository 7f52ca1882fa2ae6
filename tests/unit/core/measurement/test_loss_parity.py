import random
from collections.abc import Callable

import pytest

from tests.unit.run_samples import completed_result, make_cell
from traindyno.core.measurement.loss_parity import ParityFinding, check_loss_parity
from traindyno.core.measurement.run_result import RunResult

Loss = Callable[[int], float | None]
FIRST, SECOND = make_cell("0000000a", "ddp"), make_cell("0000000b", "fsdp")


def noisy(factor: float, *, seed: int, spread: float = 0.01) -> Loss:
    source = random.Random(seed)
    return lambda step: factor * (2 + 2 / (1 + step)) * source.lognormvariate(0, spread)


def one(cell_is_first: bool, loss: Loss, trial: int = 1) -> RunResult:
    return completed_result(FIRST if cell_is_first else SECOND, trial, loss=loss)


def test_curves_of_the_same_work_agree() -> None:
    reference = [one(True, noisy(1.0, seed=seed), seed) for seed in (1, 2, 3)]
    other = [one(False, noisy(1.0, seed=seed), seed) for seed in (4, 5, 6)]
    parity = check_loss_parity(reference, other)
    assert parity.finding is ParityFinding.AGREES
    assert parity.ratio == pytest.approx(1.0, abs=0.01)


def test_a_loss_that_is_a_tenth_higher_differs() -> None:
    reference = [one(True, noisy(1.0, seed=seed), seed) for seed in (1, 2, 3)]
    other = [one(False, noisy(1.1, seed=seed), seed) for seed in (4, 5, 6)]
    parity = check_loss_parity(reference, other)
    assert parity.finding is ParityFinding.DIFFERS
    assert parity.ratio == pytest.approx(1.1, abs=0.01)


def test_noise_wider_than_the_tolerance_decides_nothing() -> None:
    reference = [one(True, lambda _, level=level: level) for level in (2.0, 2.4)]  # type: ignore[misc]
    other = [one(False, lambda _, level=level: level) for level in (2.1, 2.5)]  # type: ignore[misc]
    assert check_loss_parity(reference, other).finding is ParityFinding.UNDECIDED


def test_single_trials_are_compared_point_by_point() -> None:
    # steps of the same data: the noise is shared, a difference of a thousandth is seen and tolerated
    shared = noisy(1.0, seed=1)
    values = [shared(step) or 0.0 for step in range(61)]
    parity = check_loss_parity([one(True, lambda step: values[step])], [one(False, lambda step: values[step] * 1.001)])
    assert parity.finding is ParityFinding.AGREES
    assert parity.ratio == pytest.approx(1.001)


def test_only_the_later_half_is_compared() -> None:
    # an early lag that has closed by half of the samples does not count
    parity = check_loss_parity([one(True, lambda _: 2.0)], [one(False, lambda step: 4.0 if step < 30 else 2.0)])
    assert parity.ratio == pytest.approx(1.0)


def test_without_losses_parity_is_unknown() -> None:
    parity = check_loss_parity([one(True, lambda _: None)], [one(False, noisy(1.0, seed=1))])
    assert (parity.finding, parity.ratio) == (ParityFinding.UNKNOWN, None)
