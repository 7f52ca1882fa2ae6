"""The notebooks run in the local cloud, from suite to figure."""

from pathlib import Path

import pytest

from localcloud.home import ENVIRONMENTS, HOME_VARIABLE
from localcloud.sagemaker_service.host import process_environment
from tests.local.forked_programs import REPO_ROOT
from tests.local.local_lab import LocalLab
from tests.notebook_cells import run_cells
from tests.xla.xla_environment import make_environment
from traindyno.api.notebook import Figure, Results

pytestmark = [pytest.mark.local, pytest.mark.nightly]

NOTEBOOKS = sorted((REPO_ROOT / "notebooks").glob("*.ipynb"))
WITH_XLA = "bert_trainium"
XLA_FOLDER = ENVIRONMENTS / process_environment.XLA_FOLDER


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=[notebook.stem for notebook in NOTEBOOKS])
def test_a_notebook_runs_from_its_suite_to_the_figure(
    notebook: Path,
    lab: LocalLab,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if notebook.stem == WITH_XLA:
        make_environment(XLA_FOLDER)
    monkeypatch.chdir(notebook.parent)
    monkeypatch.setenv(HOME_VARIABLE, str(lab.home.folder))
    shown = list(run_cells(notebook))
    (results,) = [
        figure_or_results for figure_or_results in shown if isinstance(figure_or_results, Results)
    ]
    (figure,) = [
        figure_or_results for figure_or_results in shown if isinstance(figure_or_results, Figure)
    ]
    assert {row.summary.outcome.value for row in results} == {"completed"}
    assert all(row.summary.samples_per_second for row in results)
    assert len({row.summary.cell_id for row in results}) > 1
    assert "<svg" in figure.html
