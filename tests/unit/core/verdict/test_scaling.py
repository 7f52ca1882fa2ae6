from collections.abc import Sequence

import pytest

from tests.unit.run_samples import completed_result, make_cell, make_suite
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.suite.choices import Strategy
from traindyno.core.suite.suite import Cell
from traindyno.core.verdict.cell_row import build_rows
from traindyno.core.verdict.cell_trials import Noise, group_trials
from traindyno.core.verdict.scaling import fit_all, measure_scaling
from traindyno.core.verdict.scaling_fit import ScalingFit
from traindyno.core.verdict.scaling_text import describe_scaling

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


def fits_of(
    cells: Sequence[Cell], results: Sequence[RunResult], *, examples: int, tolerance: float
) -> tuple[ScalingFit, ...]:
    rows = build_rows(group_trials(cells, results), Noise())
    return fit_all(make_suite(examples=examples, tolerance=tolerance), cells, rows, {})


def test_a_step_of_the_same_work_tells_where_its_time_and_its_cost_stop_falling() -> None:
    """1,000 steps of 512 samples on p4d, at $36 an hour, of which a step takes 0.1 + 1.6 / N + 0.004 N seconds."""
    batches = {1: 64, 2: 32, 4: 16, 8: 8, 16: 4}
    cells = [make_cell(f"0000000{count:x}"[-8:], instance_count=count, batch_size_per_device=batch)
             for count, batch in batches.items()]  # fmt: skip
    other_split = make_cell("000000ff", instance_count=4, batch_size_per_device=8, gradient_accumulation_steps=2)
    suite = make_suite(examples=512_000)
    seconds = {cell.cell_id: 0.1 + 1.6 / count + 0.004 * count for cell, count in zip(cells, batches, strict=True)}
    seconds[other_split.cell_id] = 2.0
    results = [
        completed_result(cell, trial, step_seconds=seconds[cell.cell_id], samples=512, suite=suite)
        for cell in (*cells, other_split)
        for trial in (1, 2)
    ]
    (fit,) = fits_of([*cells, other_split], results, examples=512_000, tolerance=0.1)
    assert fit.cell_ids == tuple(cell.cell_id for cell in cells)
    assert fit.step is not None
    assert (fit.step.samples, fit.step.steps) == (512, 1000)
    # N (N + 1) >= 1.6 / 0.004 = 400 from 20 on. N x T: 1.704 s on one, 1.816 on two (+ 6.6 %), 1.936 on three (+ 14 %)
    assert (fit.fastest_instances, fit.cheapest_instances) == (20, 2)
    # 0.1 + 0.08 + 0.08 s; 20 x 0.26 s at $36 / 3600 s
    assert fit.step_seconds(20) == pytest.approx(0.26)
    assert float(fit.step_usd(20) or 0) == pytest.approx(0.052)
    lines = describe_scaling(fit)
    assert lines[-2].endswith("more than 20 instances save no time; with 20, a step takes 260 ms and costs $0.0520")
    assert lines[-1].endswith(
        "more than 2 instances raise the cost of a step of 512 samples; with 2, a step takes 908 ms and costs $0.0182"
    )


def test_with_the_same_batch_per_device_no_cost_of_a_step_is_told() -> None:
    cells = [make_cell(f"0000000{count:x}", instance_count=count) for count in (1, 2, 4)]
    results = [
        completed_result(cell, trial, step_seconds=1.0 + 0.1 * cell.settings.instance_count)
        for cell in cells
        for trial in (1, 2)
    ]
    (fit,) = fits_of(cells, results, examples=100_000, tolerance=0.02)
    assert (fit.step, fit.step_seconds(2), fit.step_usd(2)) == (None, None, None)
    assert "a step" not in " ".join(describe_scaling(fit))


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
