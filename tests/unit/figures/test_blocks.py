"""What trials of one block share is removed, and nothing else."""

import random
from dataclasses import replace
from math import exp, sqrt

import pytest

from tests.unit.run_samples import known
from traindyno.figures.blocks import NO_POOL, InBlock, Pool, difference_in_blocks, residuals
from traindyno.figures.estimates import Comparison, compared
from traindyno.figures.model import compare_on_hosts
from traindyno.figures.trials import Trial


def by_round(*logs: float) -> dict[str, InBlock]:
    return {str(number): InBlock(value=value, place=None) for number, value in enumerate(logs)}


def in_rounds(*logs: float) -> list[Trial]:
    return [Trial(value=exp(trial.value), block=block) for block, trial in by_round(*logs).items()]


def compared_by_rounds(
    first: dict[str, InBlock], second: dict[str, InBlock], *others: dict[str, InBlock]
) -> Comparison:
    pool = Pool(cells=(first, second, *others))
    return compared(known(difference_in_blocks(first, second, pool, inflation=1.0)))


def test_two_cells_are_compared_by_students_paired_test() -> None:
    # differences -0.04, -0.05 and -0.06: variance 0.0001, three rounds
    pair = compared_by_rounds(by_round(0.0, 0.3, -0.2), by_round(0.04, 0.35, -0.14))
    assert pair.ratio == pytest.approx(exp(-0.05))
    assert pair.standard_error == pytest.approx(sqrt(0.0001 / 3))
    assert pair.degrees_of_freedom == 2


@pytest.mark.parametrize("count", [2, 4, 5, 9])
def test_a_cold_first_round_changes_no_comparison(count: int) -> None:
    source = random.Random(count)
    cells = [by_round(*(source.gauss(0, 0.02) for _ in range(5))) for _ in range(count)]
    cold = [
        {
            block: replace(trial, value=trial.value + (0.12 if block == "0" else 0.0))
            for block, trial in cell.items()
        }
        for cell in cells
    ]
    plain = compared_by_rounds(*cells)
    shifted = compared_by_rounds(*cold)
    assert plain.ratio == pytest.approx(shifted.ratio)
    assert plain.standard_error == pytest.approx(shifted.standard_error)


def test_from_three_cells_on_the_others_add_degrees_of_freedom() -> None:
    noises = (0.0, 0.02, 0.01, 0.03), (0.02, 0.0, 0.03, 0.01), (0.0, 0.0, 0.0, 0.0)
    cells = [by_round(*noise) for noise in (*noises[:2], *[noises[2]] * 30)]
    degrees = [compared_by_rounds(*cells[:count]).degrees_of_freedom for count in (2, 3, 5, 8, 32)]
    # paired: rounds - 1; pooled: twice that at most, as Welch's test has, and (count - 1) / count
    # of it
    assert degrees[0] == 3
    for count, pooled in zip((3, 5, 8, 32), degrees[1:], strict=True):
        assert pooled == pytest.approx(6 * (count - 1) / count)


def test_quiet_cells_do_not_hide_the_spread_of_a_noisy_one() -> None:
    """The first scatters by 5 %, all others by 1 %: over many suites the variance is that of the
    difference.
    """
    source = random.Random(7)
    squares = 0.0
    expected = 0.0026 / 5
    for _ in range(400):
        spreads = (0.05, *[0.01] * 4)
        error = compared_by_rounds(
            *(by_round(*(source.gauss(0, spread) for _ in range(5))) for spread in spreads)
        ).standard_error
        squares += (error or 0.0) ** 2
    assert squares / 400 == pytest.approx(expected, rel=0.15)


def test_rounds_not_pairing_two_cells_leave_them_unpaired() -> None:
    whole = by_round(0.0, 0.1, 0.2, 0.3)
    assert (
        difference_in_blocks(by_round(0.0, 0.1), by_round(0.1, 0.2), NO_POOL, inflation=1.0) is None
    )
    lost = {block: value for block, value in whole.items() if block != "3"}
    other = {block: value for block, value in whole.items() if block != "0"}
    assert difference_in_blocks(lost, whole, NO_POOL, inflation=1.0) is not None
    assert difference_in_blocks(lost, other, NO_POOL, inflation=1.0) is None
    # cells that lost trials of different rounds, and that repeated one later, are paired in the
    # rounds that they share
    first = by_round(0.0, 0.3, -0.2, 0.1, 0.2)
    second = by_round(0.049, 0.35, -0.149, 0.151, 0.25)
    assert difference_in_blocks(first, second, NO_POOL, inflation=1.0) is not None
    del first["1"], second["3"]
    repeated = {**first, "again": InBlock(value=0.7, place=None)}
    part = compared(known(difference_in_blocks(repeated, second, NO_POOL, inflation=1.0)))
    assert part.degrees_of_freedom == 2
    assert part.ratio == pytest.approx(exp(-0.05), rel=1e-3)
    assert known(part.p) < 0.001
    # each cell's own rounds: Welch's test
    values = in_rounds(0.0, 0.1, 0.2), [Trial(value=1.0), Trial(value=1.2), Trial(value=1.1)]
    assert compare_on_hosts(*values).degrees_of_freedom != 2
    assert (
        compare_on_hosts(in_rounds(0.0, 0.1, 0.2), in_rounds(0.1, 0.2, 0.4)).degrees_of_freedom == 2
    )


def test_correlated_trials_widen_the_comparison() -> None:
    cells = by_round(0.0, 0.3, -0.2), by_round(0.04, 0.35, -0.14)
    wide = compared(known(difference_in_blocks(*cells, NO_POOL, inflation=3.0)))
    assert wide.standard_error == pytest.approx(sqrt(3 * 0.0001 / 3))


def test_residuals_are_the_parts_of_single_cells() -> None:
    apart = residuals([by_round(0.0, 0.2, 0.1), by_round(1.0, 1.2, 1.13)])
    # centred: -0.1, 0.1, 0 and -0.11, 0.09, 0.02
    assert apart[0] == pytest.approx([0.005, 0.005, -0.01])
    assert apart[1] == pytest.approx([-0.005, -0.005, 0.01])
    assert residuals([by_round(1.0, 3.0), {"c": InBlock(value=0.0, place=None)}]) == [
        [-1.0, 1.0],
        [0.0],
    ]


def test_common_parts_of_cells_are_computed_once_for_each_set_of_blocks() -> None:
    pool = Pool(cells=[by_round(0.0, 0.1, 0.2 + cell) for cell in range(6)])
    layout = pool.layout(["0", "1", "2"])
    assert layout is pool.layout(["0", "1", "2"])
    assert layout is not pool.layout(["0", "1"])
    assert layout.common[2] == pytest.approx(2.7)


def test_one_noisy_cell_of_four_is_compared_by_the_pairs_own_differences() -> None:
    noisy = by_round(0.0, 0.06, -0.05, 0.02)
    quiet = [
        by_round(0.001, -0.001, 0.0, 0.001),
        by_round(0.0, 0.001, 0.0, -0.001),
        by_round(0.001, 0.0, 0.0, 0.001),
    ]
    # around the blocks' means the noisy cell alone would have 3 × 3/4 degrees of freedom
    assert compared_by_rounds(noisy, *quiet).degrees_of_freedom == 3
    assert (compared_by_rounds(quiet[0], *quiet[1:]).degrees_of_freedom or 0.0) > 3
