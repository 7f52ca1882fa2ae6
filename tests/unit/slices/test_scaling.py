import pytest

from tests.unit.run_samples import completed_result, make_cell, make_suite
from traindyno.core.suite.choices import Strategy
from traindyno.slices.scaling.lab import measure_scaling

# Nodes and samples/s of the published SMDDP table, without loader workers.
PUBLISHED = {2: 3234.6185, 4: 5436.92949, 8: 8094.23716, 16: 10814.09728}


def test_the_published_table_by_its_throughput() -> None:
    cells = [make_cell(f"0000000{count:x}", instance_count=count) for count in (2, 4, 8)]
    cells.append(make_cell("00000010", instance_count=16))
    results = [
        completed_result(cell, trial, step_seconds=8000 / PUBLISHED[cell.settings.instance_count], samples=8000)
        for cell in cells
        for trial in (1, 2)
    ]
    (series,) = measure_scaling(make_suite(), cells, results)
    assert [point.instance_count for point in series.points] == [2, 4, 8, 16]
    # 10814.09728 / 3234.6185 / 8 is 0.41790, where the table prints 0.41724
    assert [point.efficiency for point in series.points] == pytest.approx([1, 0.84043, 0.62559, 0.41790], abs=2e-5)
    assert series.points[3].speed_up == pytest.approx(3.3432, abs=1e-4)


def test_cells_that_differ_in_more_are_series_of_their_own() -> None:
    cells = [
        make_cell("0000000a", instance_count=1),
        make_cell("0000000b", instance_count=2),
        make_cell("0000000c", instance_count=1, strategy=Strategy.FSDP),
        make_cell("0000000d", instance_count=2, strategy=Strategy.FSDP),
        make_cell("0000000e", instance_count=2, batch_size_per_device=7),
    ]
    found = measure_scaling(make_suite(), cells, [completed_result(cell, 1) for cell in cells])
    assert [[point.cell_id[-1] for point in series.points] for series in found] == [["a", "b"], ["c", "d"]]


def test_a_cell_that_never_completed_is_no_point() -> None:
    cells = [make_cell("0000000a", instance_count=1), make_cell("0000000b", instance_count=2)]
    assert measure_scaling(make_suite(), cells, [completed_result(cells[0], 1)]) == ()


def test_efficiency_has_an_interval_where_trials_do() -> None:
    cells = [make_cell("0000000a", instance_count=1), make_cell("0000000b", instance_count=2)]
    seconds = {1: (1.0, 1.01, 0.99), 2: (0.60, 0.61, 0.59)}
    results = [
        completed_result(cell, trial, step_seconds=seconds[cell.settings.instance_count][trial - 1])
        for cell in cells
        for trial in (1, 2, 3)
    ]
    (series,) = measure_scaling(make_suite(), cells, results)
    interval = series.points[1].efficiency_interval
    assert interval is not None
    assert interval.low < 1 / 0.6 / 2 < interval.high
    assert series.points[0].efficiency_interval is None


def test_efficiency_interval_is_the_speed_ups_divided_by_the_instance_ratio() -> None:
    cells = [make_cell("0000000a", instance_count=1), make_cell("0000000b", instance_count=4)]
    rates = {1: (1.0, 1.01, 0.99), 4: (0.30, 0.305, 0.295)}
    results = [
        completed_result(cell, trial, step_seconds=rates[cell.settings.instance_count][trial - 1])
        for cell in cells
        for trial in (1, 2, 3)
    ]
    (series,) = measure_scaling(make_suite(), cells, results)
    interval = series.points[1].efficiency_interval
    assert interval is not None
    # 1 / 0.3 / 4 = 0.833 in the middle of an interval on logarithms: low x high is its square
    assert interval.low * interval.high == pytest.approx(series.points[1].efficiency ** 2)
    assert 0.7 < interval.low < interval.high < 1
