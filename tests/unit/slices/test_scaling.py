"""Series of cells over the number of instances, their speed-up and efficiency, and the section of a
report.
"""

import csv
import io
import random
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import pytest

from tests.unit.report.test_report import downloads, report_of, structure_of
from tests.unit.run_samples import completed_result, make_cell, make_suite
from traindyno.api.suite_loading import load_suite
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.run.settings import Settings
from traindyno.core.run.workload import Workload
from traindyno.core.suite.arguments import arguments_of, number_of
from traindyno.core.suite.cells import Cell
from traindyno.core.suite.choices import Compiler, GoalKind, Strategy, Task
from traindyno.core.suite.goal import Goal
from traindyno.core.suite.suite import Suite
from traindyno.features import FEATURES
from traindyno.report.charts.line_chart import Line, Point
from traindyno.report.html import render
from traindyno.slices.scaling.lab import (
    LEAST_GAIN,
    measure_scaling,
    saturation,
    saturation_sentences,
)
from traindyno.slices.scaling.series import find_axes, find_series

SCRIPT = Workload(task=Task.SCRIPT, examples=640_000)
SIZES = (1, 2, 4, 8, 16)
AXES: dict[str, tuple[Any, ...]] = {
    "batch_size": (16, 32, 64),
    "num_workers": (0, 4, 8),
    "seed": (1, 2, 3),
    "lr_text": ("1e-4", "2e-4"),
    "fused": (True, False),
    "fp16": (0, 1),
    "schedule": ("cosine", "linear"),
}
Follower = Callable[[int, dict[str, Any]], Any]
FOLLOWERS: dict[str, Follower] = {
    "max_steps": lambda size, point: 640_000 // (size * 8 * int(point.get("batch_size", 16))),
    "learning_rate": lambda size, _: str(1e-4 * size),
    "warmup_steps": lambda size, point: 100 // size + int(point.get("num_workers", 0)),
    "accumulation": lambda size, _: max(1, 4 // size),
    "eval_batch_size": lambda _, point: 2 * int(point.get("batch_size", 16)),
    "constant": lambda *_: 7,
}
# Nodes and samples/s of the published SMDDP table, without loader workers.
PUBLISHED = {2: 3234.6185, 4: 5436.92949, 8: 8094.23716, 16: 10814.09728}
SUITES = Path(__file__).parents[3] / "suites"
SMDDP_LINES = [
    f"smddp · dataloader_num_workers {workers} · per_device_train_batch_size {batch}"
    for batch in (16, 32)
    for workers in (0, 4, 8, 12, 16)
]


def cell(number: int, size: int, arguments: dict[str, Any], **settings: Any) -> Cell:
    return Cell(
        cell_id=f"{number:08x}",
        label=f"{size} {arguments}",
        settings=Settings(instance="ml.p4d.24xlarge", instance_count=size, **settings),
        hyperparameters=arguments,
    )


def grid(source: random.Random, least_sizes: int = 2) -> tuple[list[Cell], list[tuple[Any, ...]]]:
    """All points of a few axes and sizes with some followers, and for each cell the point that its
    series has.
    """
    axes = source.sample(sorted(AXES), source.randint(0, 3))
    followers = source.sample(sorted(FOLLOWERS), source.randint(0, 4))
    sizes = sorted(source.sample(SIZES, source.randint(least_sizes, 5)))
    strategies = source.sample([Strategy.DDP, Strategy.FSDP], source.randint(1, 2))
    # An argument that differs between strategies parts no series.
    own = {Strategy.DDP: 1, Strategy.FSDP: 2} if source.random() < 0.5 else {}
    cells: list[Cell] = []
    truth: list[tuple[Any, ...]] = []
    for strategy, size, values in product(
        strategies, sizes, product(*(AXES[name] for name in axes))
    ):
        point = dict(zip(axes, values, strict=True))
        arguments = {**point, **{name: FOLLOWERS[name](size, point) for name in followers}}
        if own:
            arguments["stage"] = own[strategy]
        cells.append(cell(len(cells), size, arguments, strategy=strategy))
        truth.append((strategy, *values))
    return cells, truth


def partition(cells: Sequence[Cell], keys: Sequence[Any]) -> set[frozenset[str]]:
    groups: dict[Any, set[str]] = {}
    for point, key in zip(cells, keys, strict=True):
        groups.setdefault(key, set()).add(point.cell_id)
    return {frozenset(group) for group in groups.values()}


def found_partition(cells: Sequence[Cell]) -> set[frozenset[str]]:
    return {
        frozenset(point.cell_id for point in series.cells) for series in find_series(cells, SCRIPT)
    }


@pytest.mark.parametrize("is_full", [True, False])
@pytest.mark.parametrize("seed", range(300))
def test_the_axes_part_the_series_and_following_settings_do_not(seed: int, is_full: bool) -> None:
    """In a full grid, and where one series lacks a size, which changes no other."""
    source = random.Random(seed)
    cells, truth = grid(source, least_sizes=2 if is_full else 3)
    if not is_full:
        lost = source.randrange(len(cells))
        del cells[lost], truth[lost]
    assert found_partition(cells) == partition(cells, truth)


@pytest.mark.parametrize("seed", range(300))
def test_without_some_cells_each_size_is_once_in_a_series_and_nothing_else_differs(
    seed: int,
) -> None:
    source = random.Random(seed)
    cells, _ = grid(source)
    left = source.sample(cells, max(1, int(len(cells) * source.uniform(0.3, 1.0))))
    all_series = find_series(left, SCRIPT)
    assert sorted(point.cell_id for series in all_series for point in series.cells) == sorted(
        point.cell_id for point in left
    )
    for series in all_series:
        sizes = [point.settings.instance_count for point in series.cells]
        assert sizes == sorted(set(sizes))
        assert len({point.settings.strategy for point in series.cells}) == 1
        for name in series.cells[0].hyperparameters:
            values = {point.hyperparameters[name] for point in series.cells}
            assert len(values) == 1 or (
                name in series.following and all(number_of(number) is not None for number in values)
            )
    assert found_partition(left) == found_partition(source.sample(left, len(left)))


def test_settings_true_and_text_never_follow_and_a_numeric_text_does() -> None:
    assert (
        len(
            find_series(
                [cell(0, 1, {}, compiler=Compiler.NONE), cell(1, 2, {}, compiler=Compiler.XLA)],
                SCRIPT,
            )
        )
        == 2
    )
    for one, two, series in (
        (True, False, 2),
        ("a", "b", 2),
        ("100", "50", 1),
        (100, "5e1", 1),
        ("nan", "inf", 2),
    ):
        assert len(find_series([cell(0, 1, {"x": one}), cell(1, 2, {"x": two})], SCRIPT)) == series


@pytest.mark.parametrize("seed", range(60))
def test_switch_of_zero_and_one_parts_the_series(seed: int) -> None:
    source = random.Random(seed)
    sizes = sorted(source.sample(SIZES, source.randint(2, 5)))
    first, second = source.sample(("0", "1"), 2)
    changes_from = source.choice(sizes[1:])
    cells = [
        cell(
            number,
            size,
            {
                "fp16": (int if source.random() < 0.5 else str)(
                    first if size < changes_from else second
                ),
                "batch": 32 * 16 // size,
            },
        )
        for number, size in enumerate(sizes)
    ]
    assert found_partition(cells) == partition(
        cells, [int(str(point.hyperparameters["fp16"])) for point in cells]
    )
    assert all("fp16" not in series.following for series in find_series(cells, SCRIPT))


def test_the_value_of_all_cells_counts_for_a_cell_without_its_own() -> None:
    workload = Workload(task=Task.SCRIPT, examples=1, hyperparameters={"max_steps": 100})
    assert len(find_series([cell(0, 1, {}), cell(1, 2, {"max_steps": 50})], workload)) == 1
    assert len(find_series([cell(0, 1, {}), cell(1, 2, {"max_steps": 50})], SCRIPT)) == 2


def test_the_published_table_by_its_throughput() -> None:
    cells = [make_cell(f"0000000{count:x}", instance_count=count) for count in (2, 4, 8)]
    cells.append(make_cell("00000010", instance_count=16))
    results = [
        completed_result(
            cell, trial, step_seconds=8000 / PUBLISHED[cell.settings.instance_count], samples=8000
        )
        for cell in cells
        for trial in (1, 2)
    ]
    (series,) = measure_scaling(make_suite(), cells, results)
    assert [point.instance_count for point in series.points] == [2, 4, 8, 16]
    # 10814.09728 / 3234.6185 / 8 is 0.41790, where the table prints 0.41724
    assert [point.efficiency for point in series.points] == pytest.approx(
        [1, 0.84043, 0.62559, 0.41790], abs=2e-5
    )
    assert series.points[3].speed_up == pytest.approx(3.3432, abs=1e-4)


def test_efficiency_has_the_speed_ups_interval_divided_by_the_instance_ratio() -> None:
    cells = [make_cell("0000000a", instance_count=1), make_cell("0000000b", instance_count=4)]
    rates = {1: (1.0, 1.01, 0.99), 4: (0.30, 0.305, 0.295)}
    results = [
        completed_result(cell, trial, step_seconds=rates[cell.settings.instance_count][trial - 1])
        for cell in cells
        for trial in (1, 2, 3)
    ]
    (series,) = measure_scaling(make_suite(), cells, results)
    assert series.points[0].efficiency_interval is None
    interval = series.points[1].efficiency_interval
    assert interval is not None
    # 1 / 0.3 / 4 = 0.833 in the middle of an interval on logarithms: low x high is its square
    assert interval.low * interval.high == pytest.approx(series.points[1].efficiency ** 2)
    assert 0.7 < interval.low < 1 / 0.3 / 4 < interval.high < 1


def step_seconds(cell: Cell, workload: Workload) -> float:
    """Grows with the nodes, and falls with the loader workers."""
    workers = arguments_of(cell, workload).get(
        "dataloader_num_workers", cell.settings.loader_workers
    )
    return 0.1 + 0.01 * cell.settings.instance_count + 0.05 / (1 + int(str(workers)))


def results_of(suite: Suite) -> list[RunResult]:
    """Two trials of each cell."""
    return [
        completed_result(
            cell,
            trial,
            step_seconds=step_seconds(cell, suite.workload) * (1 + trial / 1000),
            samples=128 * cell.settings.instance_count,
            suite=suite,
        )
        for cell in suite.cells
        for trial in (1, 2)
    ]


def page_of(suite: Suite, results: Sequence[RunResult] | None = None) -> str:
    page = render(report_of(results or results_of(suite), suite), FEATURES)
    structure_of(page)
    return page


def rows_of(page: str, prefix: str) -> list[Mapping[str, str]]:
    """The rows of all files of a picture."""
    files = [text for name, text in downloads(page).items() if name.startswith(prefix)]
    return [row for text in files for row in csv.DictReader(io.StringIO(text))]


@pytest.mark.parametrize("name", ["original", "rehearsal"])
def test_albert_has_a_rate_over_nodes_for_each_series(name: str) -> None:
    """A series is a strategy, a batch and a number of loader workers.

    1,250 steps are those of 2 nodes at batch 32 and of 4 at 16: the batch could follow the size for
    equal steps.
    """
    page = page_of(load_suite(SUITES / f"albert-scaling/{name}.yaml").suite)
    rows = rows_of(page, "samples_per_second-instances")
    ddp = "ddp · dataloader_num_workers 12 · per_device_train_batch_size 16"
    assert sorted({row["series"] for row in rows}) == sorted([*SMDDP_LINES, ddp])
    assert all(
        [row["instances"] for row in rows if row["series"] == line] == ["2", "4", "8", "16"]
        for line in (*SMDDP_LINES, ddp)
    )
    *_, sixteen = (row for row in rows if row["series"] == SMDDP_LINES[0])
    efficiency = float(sixteen["samples_per_second"]) / float(sixteen["ideal_samples_per_second"])
    # a step takes 0.1 + 0.05 + 0.01 N seconds, and each node has the same samples of it: 0.17 s on
    # 2, 0.31 s on 16
    assert efficiency == pytest.approx(0.17 / 0.31, rel=1e-4)
    assert f"{100 * 0.17 / 0.31:.1f} %" in page


def test_a_cell_has_the_same_figures_in_the_table_of_cells_and_the_one_for_scaling() -> None:
    goal = Goal(kind=GoalKind.FASTEST)  # the two can't be told apart
    suite = make_suite(
        matrix={"instance_count": (1, 2)}, training={"instance": "ml.p4d.24xlarge"}, goal=goal
    )
    seconds = {1: (1.0, 1.2, 1.1), 2: (1.05, 1.25, 1.1)}
    results = [
        completed_result(
            cell, trial, step_seconds=seconds[cell.settings.instance_count][trial - 1], suite=suite
        )
        for cell in suite.cells
        for trial in (1, 2, 3)
    ]
    page = page_of(suite, results)
    shown = {}
    for name in ("cells", "scaling"):
        section = page.partition(f'id="{name}"')[2].partition("</section>")[0]
        for label, row in re.findall(r'<th scope="row">(.*?)</th>(.*?)</tr>', section):
            shown[name, label] = re.findall(r"<td[^>]*>(.*?)</td>", row)
    labels = {label for _, label in shown}
    assert len(labels) == 2
    for label in labels:
        figures = shown["scaling", label]
        assert "<small>" in figures[1]
        # rate, time and cost, each with its interval
        assert {figures[1], *figures[-2:]} <= {*shown["cells", label]}


def test_more_lines_than_colors_are_pictures_of_their_own() -> None:
    suite = make_suite(
        matrix={"instance_count": (1, 2), "batch_size_per_device": tuple(range(1, 20))},
        training={"instance": "ml.p4d.24xlarge"},
    )
    page = page_of(suite)
    assert all(f"Samples per second over instances, part {part}" in page for part in (2, 3))
    assert "part 4" not in page
    assert len({row["series"] for row in rows_of(page, "samples_per_second-instances")}) == 19


def test_a_series_of_one_measured_size_is_left_out() -> None:
    suite = make_suite(
        matrix={"instance_count": (1, 2), "strategy": (Strategy.DDP, Strategy.FSDP)},
        training={"instance": "ml.p4d.24xlarge"},
    )
    results = results_of(suite)
    lost = [result for result in results if result.run.cell.settings.strategy is Strategy.FSDP][
        -1
    ].run.cell.cell_id
    page = render(
        report_of([result for result in results if result.run.cell.cell_id != lost], suite),
        FEATURES,
    )
    assert {row["series"] for row in rows_of(page, "samples_per_second-instances.csv")} == {
        "ml.p4d.24xlarge"
    }


@pytest.mark.parametrize("name", ["original", "rehearsal"])
def test_albert_has_the_posts_pictures_over_the_loader_workers(name: str) -> None:
    """Rate and efficiency saturate from 12 workers on, for each number of nodes and batch."""
    suite = load_suite(SUITES / f"albert-scaling/{name}.yaml").suite
    page = page_of(suite)
    lines = {
        f"{nodes} × ml.p4d.24xlarge · per_device_train_batch_size {batch}"
        for nodes in (2, 4, 8, 16)
        for batch in (16, 32)
    }
    for column in ("samples_per_second", "efficiency"):
        rows = rows_of(page, f"{column}-dataloader_num_workers")
        assert {row["series"] for row in rows} == lines
        assert [row["dataloader num workers"] for row in rows] == 8 * ["0", "4", "8", "12", "16"]
    # a step takes 0.1 + 0.01 N + 0.05 / (1 + workers) s: without workers 0.17 s on 2 nodes and
    # 0.31 s on 16, with 16 workers 0.12 + 1/340 and 0.26 + 1/340
    at_16 = [float(row["efficiency"]) for row in rows if row["series"].startswith("16 ×")]
    assert at_16[0] == pytest.approx(0.17 / 0.31, rel=1e-4)
    assert at_16[4] == pytest.approx((0.12 + 1 / 340) / (0.26 + 1 / 340), rel=1e-4)
    # 8 → 12 workers save 0.05 (1/9 - 1/13) = 1.7 ms, 4 → 8 save 4.4 ms, of some 125 ms on 2 nodes
    assert "From 8 dataloader num workers on, more gains less than 2 %: " in page
    assert ">per device train batch size</label>" in page


@pytest.mark.parametrize(
    ("rates", "begin"),
    [
        # the post's SMDDP figures of 2 nodes, over 0, 4, 8, 12 and 16 workers in their shape
        ((3234, 6000, 6700, 6800, 6810), 8),
        ((100, 101, 150, 152, 153), 8),  # a flat part before a gain is no saturation
        ((100, 90, 80, 70, 60), 0),
        ((100, 101.9), 0),
        ((100, 102), None),
        ((100, 100, 100, 100, 110), None),
    ],
)
def test_saturation_needs_measured_neighbours_without_a_gain(
    rates: Sequence[float], begin: float | None
) -> None:
    points = [Point(x=4.0 * index, y=rate) for index, rate in enumerate(rates)]
    assert saturation(points) == begin


def test_lines_of_one_sentence_are_named_in_it() -> None:
    rates = {"max length": (1.0, 2.0), "longest": (3.0, 4.0), "bucket": (5.0, 5.0)}
    lines = [
        Line(label=label, curves=((Point(x=4, y=low), Point(x=8, y=high)),))
        for label, (low, high) in rates.items()
    ]
    assert [*saturation_sentences("batch size per device", lines)] == [
        "More batch size per device still gained at least 2 % at 8, the most measured: max length; "
        "longest.",
        "From 4 batch size per device on, more gains less than 2 %: bucket.",
    ]


@pytest.mark.parametrize("seed", range(60))
def test_the_sentence_of_saturation_holds_for_any_rates(seed: int) -> None:
    source = random.Random(seed)
    points = [Point(x=float(x), y=source.uniform(1, 1.1)) for x in range(source.randint(2, 8))]
    begin = saturation(points)
    gains = {left.x: right.y / left.y - 1 for left, right in pairwise(points)}
    later = [gain for x, gain in gains.items() if begin is not None and x >= begin]
    assert all(gain < LEAST_GAIN for gain in later)
    # the neighbour before gains, or there is none
    before = [gain for x, gain in gains.items() if begin is None or x < begin]
    assert not before or before[-1] >= LEAST_GAIN


@pytest.mark.parametrize("seed", range(100))
def test_any_grid_has_an_axis_for_each_of_its_numbers_and_none_for_followers(seed: int) -> None:
    source = random.Random(seed)
    cells, _ = grid(source)
    axes = find_axes(cells, SCRIPT)
    assert axes[0] == "instance_count"
    varying = {name for name in AXES if len({cell.hyperparameters.get(name) for cell in cells}) > 1}
    numbers = {name for name in varying if isinstance(AXES[name][0], int)}
    assert {name.removeprefix("hyperparameters.") for name in axes[1:]} & set(AXES) >= (
        numbers - {"fused", "fp16"}
    ) - {name for series in find_series(cells, SCRIPT) for name in series.following}
    for axis in axes:
        for series in find_series(cells, SCRIPT, axis):
            assert len({point.settings.strategy for point in series.cells}) == 1


def test_with_one_value_of_every_number_the_section_says_so() -> None:
    training = {"instance": "ml.p4d.24xlarge"}
    suite = make_suite(matrix={"strategy": (Strategy.DDP, Strategy.FSDP)}, training=training)
    section = page_of(suite).partition('id="scaling"')[2].partition("</section>")[0]
    assert "No two measured cells differ in one number only" in section
    assert "svg" not in section
    suite = make_suite(matrix={"loader_workers": (0, 1, 2)}, training=training)
    section = page_of(suite).partition('id="scaling"')[2].partition("</section>")[0]
    assert "Samples per second over loader workers" in section
    assert "One number of instances was measured" in section
