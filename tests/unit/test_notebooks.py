"""The notebooks as files: without outputs, and with suites that the lab accepts. tests/local runs
them.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.notebook_cells import code_cells
from traindyno import Suite
from traindyno.api.suite_loading import check_startable

REPO_ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((REPO_ROOT / "notebooks").glob("*.ipynb"))
PACKS = sorted(
    path.parent.name.replace("-", "_") for path in (REPO_ROOT / "suites").glob("*/local.yaml")
)


def suite_of(notebook: Path) -> Suite:
    """Read from the notebook's folder."""
    (source,) = [cell for cell in code_cells(notebook) if "Suite.from_file" in cell]
    names: dict[str, Any] = {"Suite": Suite}
    exec(source.partition("planned =")[0], names)
    suite = names["suite"]
    assert isinstance(suite, Suite)
    return suite


def test_each_published_experiment_has_a_notebook() -> None:
    assert [path.stem for path in NOTEBOOKS] == PACKS


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_kept_without_the_outputs_of_its_cells(notebook: Path) -> None:
    document = json.loads(notebook.read_text(encoding="utf-8"))
    assert (document["nbformat"], document["nbformat_minor"]) == (4, 5)
    assert len({cell["id"] for cell in document["cells"]}) == len(document["cells"])
    code = [cell for cell in document["cells"] if cell["cell_type"] == "code"]
    assert len(code) >= 5
    assert [cell for cell in code if cell["outputs"] or cell["execution_count"] is not None] == []


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_suite_of_a_notebook_has_cells_to_compare(
    notebook: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(notebook.parent)
    suite = suite_of(notebook)
    check_startable(suite)
    assert len(suite.suite.cells) > 1
    assert suite.suite.measurement.trials > 1
