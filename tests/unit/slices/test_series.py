"""Series of cells over the instances, over generated grids: what follows the size, and what is an axis of its own."""

import random
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import pytest

from tests.unit.run_samples import make_suite
from traindyno.core.suite.arguments import number_of
from traindyno.core.suite.cells import expand_cells
from traindyno.core.suite.choices import Compiler, Strategy, Task
from traindyno.core.suite.settings import Settings
from traindyno.core.suite.suite import Cell
from traindyno.core.suite.workload import Workload
from traindyno.slices.scaling.lab import find_series, label_series

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


def cell(number: int, size: int, arguments: dict[str, Any], **settings: Any) -> Cell:
    return Cell(
        cell_id=f"{number:08x}",
        label=f"{size} {arguments}",
        settings=Settings(instance="ml.p4d.24xlarge", instance_count=size, **settings),
        hyperparameters=arguments,
    )


def grid(source: random.Random, least_sizes: int = 2) -> tuple[list[Cell], list[tuple[Any, ...]]]:
    """All points of a few axes and sizes with some followers, and for each cell the point that its series has."""
    axes = source.sample(sorted(AXES), source.randint(0, 3))
    followers = source.sample(sorted(FOLLOWERS), source.randint(0, 4))
    sizes = sorted(source.sample(SIZES, source.randint(least_sizes, 5)))
    strategies = source.sample([Strategy.DDP, Strategy.FSDP], source.randint(1, 2))
    # An argument that differs between strategies parts no series.
    own = {Strategy.DDP: 1, Strategy.FSDP: 2} if source.random() < 0.5 else {}
    cells: list[Cell] = []
    truth: list[tuple[Any, ...]] = []
    for strategy, size, values in product(strategies, sizes, product(*(AXES[name] for name in axes))):
        point = dict(zip(axes, values, strict=True))
        arguments = {**point, **{name: FOLLOWERS[name](size, point) for name in followers}}
        if own:
            arguments["stage"] = own[strategy]
        cells.append(cell(len(cells), size, arguments, strategy=strategy))
        truth.append((strategy, *values))
    return cells, truth


def partition(cells: Sequence[Cell], keys: Sequence[Any]) -> set[frozenset[str]]:
    found: dict[Any, set[str]] = {}
    for each, key in zip(cells, keys, strict=True):
        found.setdefault(key, set()).add(each.cell_id)
    return {frozenset(group) for group in found.values()}


def found_partition(cells: Sequence[Cell]) -> set[frozenset[str]]:
    return {frozenset(each.cell_id for each in series.cells) for series in find_series(cells, SCRIPT)}


@pytest.mark.parametrize("seed", range(300))
def test_in_a_full_grid_the_axes_part_the_series_and_what_follows_does_not(seed: int) -> None:
    cells, truth = grid(random.Random(seed))
    assert found_partition(cells) == partition(cells, truth)


@pytest.mark.parametrize("seed", range(300))
def test_without_some_cells_each_size_is_once_in_a_series_and_nothing_else_differs(seed: int) -> None:
    source = random.Random(seed)
    cells, _ = grid(source)
    left = source.sample(cells, max(1, int(len(cells) * source.uniform(0.3, 1.0))))
    found = find_series(left, SCRIPT)
    assert sorted(each.cell_id for series in found for each in series.cells) == sorted(each.cell_id for each in left)
    for series in found:
        sizes = [each.settings.instance_count for each in series.cells]
        assert sizes == sorted(set(sizes))
        assert len({each.settings.strategy for each in series.cells}) == 1
        for name in series.cells[0].hyperparameters:
            values = {each.hyperparameters[name] for each in series.cells}
            assert len(values) == 1 or (
                name in series.following and all(number_of(each) is not None for each in values)
            )
    assert found_partition(left) == found_partition(source.sample(left, len(left)))


@pytest.mark.parametrize("seed", range(300))
def test_a_size_that_one_series_lacks_changes_no_other_series(seed: int) -> None:
    source = random.Random(seed)
    cells, truth = grid(source, least_sizes=3)
    lost = source.randrange(len(cells))
    kept = [index for index in range(len(cells)) if index != lost]
    assert found_partition([cells[index] for index in kept]) == partition(
        [cells[index] for index in kept], [truth[index] for index in kept]
    )


def test_published_table_has_a_series_for_each_batch_and_number_of_workers() -> None:
    cells = [
        cell(index, size, {"num_workers": workers, "batch": batch, "max_steps": -(-640_000 // (size * 8 * batch))})
        for index, (size, workers, batch) in enumerate(product((2, 4, 8, 16), (0, 4, 8, 12, 16), (16, 32)))
    ]
    found = find_series(cells, SCRIPT)
    # 1,250 steps are those of 2 nodes at batch 32 and of 4 at 16: the batch could follow the size for equal steps
    assert [len(series.cells) for series in found] == [4] * 10
    assert {series.following for series in found} == {("max_steps",)}


def test_settings_true_and_text_never_follow_and_a_text_that_is_a_number_does() -> None:
    assert (
        len(find_series([cell(0, 1, {}, compiler=Compiler.NONE), cell(1, 2, {}, compiler=Compiler.XLA)], SCRIPT)) == 2
    )
    for one, two, series in ((True, False, 2), ("a", "b", 2), ("100", "50", 1), (100, "5e1", 1), ("nan", "inf", 2)):
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
                "fp16": (int if source.random() < 0.5 else str)(first if size < changes_from else second),
                "batch": 32 * 16 // size,
            },
        )
        for number, size in enumerate(sizes)
    ]
    assert found_partition(cells) == partition(cells, [int(str(each.hyperparameters["fp16"])) for each in cells])
    assert all("fp16" not in series.following for series in find_series(cells, SCRIPT))


def test_a_second_value_at_one_size_is_an_axis() -> None:
    cells = [cell(0, 1, {"lr": 1}), cell(1, 2, {"lr": 1}), cell(2, 4, {"lr": 1}), cell(3, 4, {"lr": 2})]
    assert found_partition(cells) == {frozenset({"00000000", "00000001", "00000002"}), frozenset({"00000003"})}


def test_the_value_of_all_cells_counts_where_a_cell_has_none_of_its_own() -> None:
    workload = Workload(task=Task.SCRIPT, examples=1, hyperparameters={"max_steps": 100})
    assert len(find_series([cell(0, 1, {}), cell(1, 2, {"max_steps": 50})], workload)) == 1
    assert len(find_series([cell(0, 1, {}), cell(1, 2, {"max_steps": 50})], SCRIPT)) == 2


def test_the_label_of_a_series_leaves_out_the_size() -> None:
    suite = make_suite(
        workload=SCRIPT,
        matrix={"instance_count": (1, 2), "hyperparameters.workers": (0, 4), "hyperparameters.batch": (8, 16)},
        training={"instance": "ml.p4d.24xlarge"},
    )
    cells = expand_cells(suite)
    assert [each.label for each in label_series(find_series(cells, SCRIPT))] == [
        f"batch {batch} · workers {workers}" for workers in (0, 4) for batch in (8, 16)
    ]
