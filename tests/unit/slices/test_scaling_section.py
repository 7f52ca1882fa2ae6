"""Which shipped suites have a section about scaling, and its pictures: each suite with its own cells."""

import csv
import io
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.unit.report.test_report import downloads, report_of, structure_of
from tests.unit.run_samples import completed_result, make_suite
from traindyno.api.suite_loading import load_suite
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.suite.arguments import arguments_of
from traindyno.core.suite.cells import expand_cells
from traindyno.core.suite.choices import Strategy
from traindyno.core.suite.suite import Cell, Suite
from traindyno.core.suite.workload import Workload
from traindyno.report.html import render
from traindyno.slices.scaling.lab import measure_scaling

SUITES = Path(__file__).parents[3] / "suites"
PACK_SUITES = sorted(path for path in SUITES.glob("*/*.yaml") if path.name != "claims.yaml")
SCALING = {*(f"albert-scaling/{name}" for name in ("original", "rehearsal", "modern", "local")), "gptj-parallel/modern"}
SMDDP_LINES = [
    f"smddp · dataloader_num_workers {workers} · per_device_train_batch_size {batch}"
    for batch in (16, 32)
    for workers in (0, 4, 8, 12, 16)
]


def named(path: Path) -> str:
    return f"{path.parent.name}/{path.stem}"


def step_seconds(cell: Cell, workload: Workload) -> float:
    """Grows with the nodes, and falls with the loader workers."""
    workers = arguments_of(cell, workload).get("dataloader_num_workers", cell.settings.loader_workers)
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
        for cell in expand_cells(suite)
        for trial in (1, 2)
    ]


def page_of(suite: Suite) -> str:
    page = render(report_of(results_of(suite), suite))
    structure_of(page)
    return page


def rows_of(page: str, prefix: str) -> list[Mapping[str, str]]:
    """The rows of all files of a picture."""
    files = [text for name, text in downloads(page).items() if name.startswith(prefix)]
    return [row for text in files for row in csv.DictReader(io.StringIO(text))]


@pytest.mark.parametrize("path", PACK_SUITES, ids=named)
def test_the_suites_that_compare_sizes_are_measured_over_sizes_and_no_others(path: Path) -> None:
    suite = load_suite(path).suite
    cells = expand_cells(suite)
    sizes = {cell.settings.instance_count for cell in cells}
    is_scaling = len(sizes) > 1 and bool(measure_scaling(suite, cells, results_of(suite)))
    assert is_scaling is (named(path) in SCALING)


@pytest.mark.parametrize("name", ["original", "rehearsal"])
def test_albert_has_a_rate_over_nodes_for_each_series(name: str) -> None:
    """A series is a strategy, a batch and a number of loader workers."""
    page = page_of(load_suite(SUITES / f"albert-scaling/{name}.yaml").suite)
    rows = rows_of(page, "scaling")
    ddp = "ddp · dataloader_num_workers 12 · per_device_train_batch_size 16"
    assert sorted({row["series"] for row in rows}) == sorted([*SMDDP_LINES, ddp])
    assert all(
        [row["instances"] for row in rows if row["series"] == line] == ["2", "4", "8", "16"]
        for line in (*SMDDP_LINES, ddp)
    )
    *_, sixteen = (row for row in rows if row["series"] == SMDDP_LINES[0])
    efficiency = float(sixteen["samples_per_second"]) / float(sixteen["ideal_samples_per_second"])
    # a step takes 0.1 + 0.05 + 0.01 N seconds, and each node has the same samples of it: 0.17 s on 2, 0.31 s on 16
    assert efficiency == pytest.approx(0.17 / 0.31, rel=1e-4)
    assert f"{100 * 0.17 / 0.31:.1f} %" in page


def test_more_lines_than_colors_are_pictures_of_their_own() -> None:
    suite = make_suite(
        matrix={"instance_count": (1, 2), "batch_size_per_device": tuple(range(1, 20))},
        training={"instance": "ml.p4d.24xlarge"},
    )
    page = page_of(suite)
    assert all(f"Samples per second over instances, part {part}" in page for part in (2, 3))
    assert "part 4" not in page
    assert len({row["series"] for row in rows_of(page, "scaling")}) == 19


def test_a_series_of_one_measured_size_is_left_out() -> None:
    suite = make_suite(
        matrix={"instance_count": (1, 2), "strategy": (Strategy.DDP, Strategy.FSDP)},
        training={"instance": "ml.p4d.24xlarge"},
    )
    results = results_of(suite)
    lost = [each for each in results if each.run.cell.settings.strategy is Strategy.FSDP][-1].run.cell.cell_id
    page = render(report_of([each for each in results if each.run.cell.cell_id != lost], suite))
    assert {row["series"] for row in rows_of(page, "scaling.csv")} == {"ml.p4d.24xlarge"}
