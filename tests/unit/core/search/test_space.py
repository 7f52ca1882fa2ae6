"""Cells as points on the axes in which they differ."""

from dataclasses import replace
from math import log

import pytest

from tests.unit.run_samples import make_cell
from traindyno.core.search.space import Axis, build_space
from traindyno.core.suite.choices import Strategy


def test_numbers_are_spaced_by_their_ratios_and_names_are_levels() -> None:
    cells = [
        make_cell(f"{index:08x}", instance_count=count, strategy=strategy)
        for index, (count, strategy) in enumerate(
            [(1, Strategy.DDP), (4, Strategy.FSDP), (16, Strategy.DDP), (4, Strategy.DDP)]
        )
    ]
    space = build_space(cells)
    count, strategy = space.axes
    assert count.name == "instance_count"
    assert count.positions == pytest.approx((0.0, 0.5, 1.0))
    assert (strategy.name, strategy.levels, strategy.positions) == ("strategy", 2, None)
    assert space.points == ((0, 0), (1, 1), (2, 0), (1, 0))
    assert [axis.degrees_of_freedom for axis in space.axes] == [2, 1]


def test_boolean_setting_is_no_number_and_an_absent_setting_is_a_level() -> None:
    cells = [
        make_cell(f"{index:08x}", pin_memory=on, prefetch_factor=factor)
        for index, (on, factor) in enumerate([(False, None), (True, 2), (True, 4)])
    ]
    axes = {axis.name: axis for axis in build_space(cells).axes}
    assert axes["pin_memory"].positions is None
    assert (axes["prefetch_factor"].levels, axes["prefetch_factor"].positions) == (3, None)


def test_cells_that_do_not_differ_have_no_axes() -> None:
    space = build_space([make_cell()])
    assert (space.axes, space.points) == ((), ((),))


@pytest.mark.parametrize(
    ("counts", "middle"),
    [
        # a ratio of 3 is spaced by logarithms, one of 2.5 is not; nor are 0 to 2, while 0 to 3 are
        ((2, 3, 5), 1 / 3),
        ((2, 4, 6), log(2) / log(3)),
        ((0, 1, 2), 1 / 2),
        ((0, 1, 3), log(2) / log(4)),
        ((0, 2, 5), log(3) / log(6)),
    ],
)
def test_the_scale_of_a_number_follows_from_its_range(counts: tuple[int, ...], middle: float) -> None:
    cells = [make_cell(f"{index:08x}", loader_workers=count) for index, count in enumerate(counts)]
    assert build_space(cells).axes[0].positions == pytest.approx((0.0, middle, 1.0))


def test_numbers_are_in_their_order_and_names_in_that_of_the_cells() -> None:
    cells = [make_cell(f"{index:08x}", loader_workers=count) for index, count in enumerate((8, 2, 4, 2))]
    assert build_space(cells).points == ((2,), (0,), (1,), (0,))


def test_hyperparameters_of_a_script_are_axes_too() -> None:
    given: list[dict[str, int | float]] = [{"lr": 0.1, "seed": 1}, {"lr": 0.2, "seed": 1}, {"seed": 1}]
    cells = [replace(make_cell(f"{index:08x}"), hyperparameters=each) for index, each in enumerate(given)]
    (axis,) = build_space(cells).axes
    assert (axis.name, axis.levels, axis.positions) == ("hyperparameters.lr", 3, None)


@pytest.mark.parametrize(
    ("levels", "is_number", "degrees"), [(2, True, 1), (3, True, 2), (9, True, 2), (2, False, 1), (9, False, 8)]
)
def test_a_number_has_two_degrees_of_freedom_at_most(levels: int, is_number: bool, degrees: int) -> None:
    positions = tuple(float(level) for level in range(levels)) if is_number else None
    assert Axis(name="x", levels=levels, positions=positions).degrees_of_freedom == degrees
