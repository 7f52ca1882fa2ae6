"""Cells as points on the axes in which they differ."""

import pytest

from tests.unit.run_samples import make_cell
from traindyno.core.search.space import build_space
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


def test_a_setting_that_is_on_or_off_is_no_number_and_one_that_is_not_given_is_a_level() -> None:
    cells = [
        make_cell(f"{index:08x}", pin_memory=on, prefetch_factor=factor)
        for index, (on, factor) in enumerate([(False, None), (True, 2), (True, 4)])
    ]
    axes = {axis.name: axis for axis in build_space(cells).axes}
    assert axes["pin_memory"].positions is None
    assert (axes["prefetch_factor"].levels, axes["prefetch_factor"].positions) == (3, None)


def test_a_count_that_begins_at_nought_is_spaced_too() -> None:
    cells = [make_cell(f"{index:08x}", loader_workers=count) for index, count in enumerate((0, 1, 3))]
    assert build_space(cells).axes[0].positions == pytest.approx((0.0, 0.5, 1.0))


def test_cells_that_do_not_differ_have_no_axes() -> None:
    space = build_space([make_cell()])
    assert (space.axes, space.points) == ((), ((),))
