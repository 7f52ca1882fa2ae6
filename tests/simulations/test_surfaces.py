"""Response surfaces: what is in the files, and that a played suite spends what the surface says."""

import json
from pathlib import Path

import pytest

from tests.simulations.race_lab import Conditions, measure_grid
from tests.simulations.response_surface import FOLDER, Surface, read_surface, read_surfaces


def surface(name: str) -> Surface:
    return read_surface(FOLDER / f"{name}.json")


def test_the_published_figures_are_in_the_surfaces() -> None:
    table = {
        (
            cell.settings["instance_count"],
            cell.settings["strategy"],
            cell.settings["loader_workers"],
        ): cell.seconds
        for cell in surface("albert-published").cells
    }
    for nodes, seconds in {2: 197.86, 4: 117.71, 8: 79.07, 16: 59.18}.items():
        assert table[nodes, "smddp", 0] == pytest.approx(seconds, abs=0.01)
    assert (table[16, "smddp", 0] or 0) / (table[16, "smddp", 12] or 1) == pytest.approx(
        1.6037, abs=1e-4
    )
    pair = surface("trainium-pair")
    costs = sorted(value for cell_id in pair.by_id if (value := pair.value(cell_id)))
    assert costs == pytest.approx([41.435, 68.606], abs=0.01)


def test_there_are_enough_surfaces_of_each_kind() -> None:
    surfaces = read_surfaces()
    assert len(surfaces) >= 12
    assert {surface.origin for surface in surfaces} == {
        "published",
        "interpolated",
        "measured",
        "generated",
    }
    assert any(cell.seconds is None for surface in surfaces for cell in surface.cells)


def test_the_truth_of_a_measured_cell_is_the_mean_of_its_trials(tmp_path: Path) -> None:
    trials = [
        {"seconds": seconds, "billable_seconds": seconds / 10} for seconds in (90.0, 100.0, 110.0)
    ]
    document = json.loads((FOLDER / "measured-bert.json").read_text(encoding="utf-8"))
    path = tmp_path / "measured.json"
    path.write_text(
        json.dumps({**document, "cells": [{"settings": {"loader_workers": 0}, "trials": trials}]})
    )
    (cell,) = read_surface(path).cells
    assert (cell.seconds, cell.billable_seconds) == pytest.approx(
        ((90 * 100 * 110) ** (1 / 3), 10.0)
    )


def test_a_grid_spends_its_billable_seconds() -> None:
    grid = measure_grid(
        surface("albert-published"), 1, Conditions(noise=0.001, step_noise=0.001, hosts=0.001)
    )
    assert grid.share == pytest.approx(1.0, rel=0.01)
    assert (grid.runs, grid.regret) == (60, 0.0)
