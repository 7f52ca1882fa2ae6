from pathlib import Path
from typing import Any

import pytest
import yaml

from bench.projection import CELLS, LONG_STEPS, SHORT_STEPS, figures, later_runs, write_suite
from traindyno.core.suite.cells import expand_cells
from traindyno.core.suite.checks.accepted_suite import parse_suite


def report(rows: dict[str, Any], results: dict[str, float]) -> dict[str, Any]:
    return {
        "verdict": {"rows": [{"cell_id": cell_id, "prediction": prediction} for cell_id, prediction in rows.items()]},
        "results": [
            {
                "run": {"cell": {"cell_id": cell_id, "label": cell_id}},
                "outcome": "completed",
                "attempts": [{"phase_seconds": {"starting": 4.0, "training": seconds - 4.0}}],
            }
            for cell_id, seconds in results.items()
        ],
    }


def test_long_runs_are_compared_with_their_own_cells_interval() -> None:
    short = report({"a": {"seconds": {"low": 90.0, "high": 110.0}}, "b": {"seconds": None}, "c": None}, {})
    later = later_runs(short, report({}, {"a": 100.0, "b": 50.0, "c": 60.0}))
    assert [each.is_covered for each in later] == [True, False, False]
    # sqrt(90 x 110) / 100
    assert later[0].error == pytest.approx(-0.00501, abs=1e-5)
    values = {figure.name: figure.value for figure in figures(later)}
    assert values["long runs"] == 3
    assert values["of these, with an interval from steady short trials"] == 1
    assert values["within the 90 % prediction interval"] == 100


def test_no_interval_is_no_figure() -> None:
    later = later_runs(report({"a": None}, {}), report({}, {"a": 100.0}))
    assert [figure.value for figure in figures(later)] == [1, 0, None, None]


def test_both_suites_have_the_same_six_cells_and_ten_times_the_steps(tmp_path: Path) -> None:
    names = [("short", SHORT_STEPS), ("long", LONG_STEPS)]
    paths = [write_suite(tmp_path / f"{name}.yaml", CELLS, 12_800, max_steps=steps, trials=3) for name, steps in names]
    short, long = (expand_cells(parse_suite(yaml.safe_load(path.read_text()))) for path in paths)
    assert [cell.cell_id for cell in short] == [cell.cell_id for cell in long]
    assert len(short) == 6
    assert LONG_STEPS // 2 >= 10 * SHORT_STEPS  # half of the steps at twice the batch
