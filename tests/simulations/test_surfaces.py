"""Response surfaces: the files are what their generators write, and a played suite spends what the surface says."""

import json
from dataclasses import replace
from math import exp, log, sqrt
from pathlib import Path

import pytest

from tests.simulations.published_surfaces import albert_full, albert_published, trainium
from tests.simulations.race_lab import Conditions, measure_grid
from tests.simulations.response_surface import FOLDER, Surface, read_surface, read_surfaces, render, surface_document
from tests.simulations.surface_generator import COMMITTED, generate_surface

MADE = [
    albert_published(),
    albert_full(),
    trainium(),
    *(generate_surface(seed, axes) for seed, axes in enumerate(COMMITTED, start=1)),
]


@pytest.mark.parametrize("surface", MADE, ids=lambda surface: surface.name)
def test_a_file_is_what_its_module_writes(surface: Surface) -> None:
    assert (FOLDER / f"{surface.name}.json").read_text(encoding="utf-8") == render(surface_document(surface))


def test_the_published_figures_are_in_the_surfaces() -> None:
    table = {
        (cell.settings["instance_count"], cell.settings["strategy"], cell.settings["loader_workers"]): cell.seconds
        for cell in albert_published().cells
    }
    for nodes, seconds in {2: 197.86, 4: 117.71, 8: 79.07, 16: 59.18}.items():
        assert table[nodes, "smddp", 0] == pytest.approx(seconds, abs=0.01)
    assert (table[16, "smddp", 0] or 0) / (table[16, "smddp", 12] or 1) == pytest.approx(1.6037, abs=1e-4)
    pair = trainium()
    costs = sorted(value for cell_id in pair.by_id if (value := pair.value(cell_id)))
    assert costs == pytest.approx([41.435, 68.606], abs=0.01)


def test_there_are_enough_surfaces_of_each_kind() -> None:
    surfaces = read_surfaces()
    assert len(surfaces) >= 12
    assert {surface.origin for surface in surfaces} == {"published", "interpolated", "measured", "generated"}
    assert any(cell.seconds is None for surface in surfaces for cell in surface.cells)


def test_the_truth_of_a_measured_cell_is_the_mean_of_its_trials(tmp_path: Path) -> None:
    trials = [{"seconds": seconds, "billable_seconds": 2.0} for seconds in (90.0, 100.0, 110.0)]
    document = {
        "name": "measured",
        "origin": "measured",
        "source": "",
        "goal": "fastest",
        "training": {"instance": "local.cpu"},
        "cells": [{"settings": {"loader_workers": 0}, "trials": trials}],
    }
    path = tmp_path / "measured.json"
    path.write_text(json.dumps(document))
    surface = read_surface(path)
    assert surface is not None
    (cell,) = surface.cells
    mean = (90 * 100 * 110) ** (1 / 3)
    assert cell.seconds == pytest.approx(mean)
    assert cell.scatter[0] == pytest.approx(log(90 / mean) * sqrt(3 / 2))
    assert exp(sum(cell.scatter)) == pytest.approx(1)
    path.write_text(json.dumps({**document, "cells": [{"settings": {"loader_workers": 0}, "trials": trials[:2]}]}))
    assert read_surface(path) is None


def test_a_grid_spends_its_billable_seconds() -> None:
    surface = albert_published()
    grid = measure_grid(surface, 1, Conditions(noise=0.001, step_noise=0.001, hosts=0.001))
    assert grid.share == pytest.approx(1.0, rel=0.01)
    assert (grid.runs, grid.regret) == (60, 0.0)


def test_costs_are_those_of_all_instances() -> None:
    surface = replace(albert_published(), cells=albert_published().cells[:1])
    (cell_id,) = surface.by_id
    assert surface.trial_seconds(cell_id) == 2 * surface.cells[0].billable_seconds
    assert surface.grid_seconds(3) == 6 * surface.cells[0].billable_seconds
