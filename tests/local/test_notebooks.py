"""The notebooks run in the local cloud, from suite to figure. ``make nightly`` runs all of them, ``make test`` one."""

from pathlib import Path

import pytest

from localcloud.home import ENVIRONMENTS, HOME_VARIABLE
from localcloud.sagemaker_service.host.local_images import SEPARATE_ENVIRONMENTS
from tests.local.forked_programs import REPO_ROOT
from tests.local.local_lab import LocalLab
from tests.nightly import repeat_of
from tests.notebook_cells import run_cells
from tests.xla.xla_environment import make_environment
from traindyno.api.notebook import Figure
from traindyno.api.results import Results
from traindyno.sagemaker.images import LOCAL_XLA_IMAGE

pytestmark = pytest.mark.local

NOTEBOOKS = sorted((REPO_ROOT / "notebooks").glob("*.ipynb"))
IN_MAKE_TEST, WITH_XLA = "albert_scaling", "bert_trainium"
XLA_FOLDER = ENVIRONMENTS / SEPARATE_ENVIRONMENTS[LOCAL_XLA_IMAGE].folder
TRAINED_IN_FORKS = repeat_of(
    "tests/training/test_packs.py::test_a_cell_of_the_local_suite_trains_in_as_many_processes_as_it_names"
)


def marks_of(notebook: Path) -> list[pytest.MarkDecorator]:
    return [] if notebook.stem == IN_MAKE_TEST else [TRAINED_IN_FORKS]


@pytest.mark.parametrize("notebook", [pytest.param(each, marks=marks_of(each), id=each.stem) for each in NOTEBOOKS])
def test_a_notebook_runs_from_its_suite_to_the_figure(
    notebook: Path, lab: LocalLab, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if notebook.stem == WITH_XLA:
        make_environment(XLA_FOLDER)
    monkeypatch.chdir(notebook.parent)
    monkeypatch.setenv(HOME_VARIABLE, str(lab.home.folder))
    shown = list(run_cells(notebook))
    (results,) = [each for each in shown if isinstance(each, Results)]
    (figure,) = [each for each in shown if isinstance(each, Figure)]
    assert {row.summary.outcome.value for row in results} == {"completed"}
    assert all(row.summary.samples_per_second for row in results)
    assert len({row.summary.cell_id for row in results}) > 1
    assert "<svg" in figure.html
