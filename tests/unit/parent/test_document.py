"""A document that this parent does not know ends the job with a text that says what is wrong."""

import ast
import copy
import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.parent.shared_job import REPOSITORY, SharedJob, run_document
from traindyno.core.jobs.journal_format import TORCHRUN_VARIABLE
from traindyno.import_closure import imported_files
from traindyno.parent.document import DocumentRefused, find_document, read_document

DOCUMENT = SharedJob(root=Path(), runs=[run_document("a"), run_document("b")]).document()
GIVEN = [name for name in DOCUMENT if name not in {"execution_id", "max_run_seconds", "grace_seconds"}]
OF_RUN = list(DOCUMENT["runs"][0])


def refusal(tmp_path: Path, document: object) -> str:
    path = tmp_path / "document.json"
    path.write_text(json.dumps(document))
    with pytest.raises(DocumentRefused) as refused:
        read_document(path)
    assert str(path) in str(refused.value)
    return str(refused.value)


def changed(place: str, value: Any, *, run: bool) -> dict[str, Any]:
    document = copy.deepcopy(DOCUMENT)
    (document["runs"][1] if run else document)[place] = value
    return document


@pytest.mark.parametrize(
    ("name", "is_of_run"), [*((name, False) for name in GIVEN), *((name, True) for name in OF_RUN)]
)
def test_each_field_is_checked_by_its_name(name: str, is_of_run: bool, tmp_path: Path) -> None:
    where = f"runs[1].{name}" if is_of_run else name
    document = changed(name, True, run=is_of_run)
    assert f"{where} is True, expected" in refusal(tmp_path, document)
    del (document["runs"][1] if is_of_run else document)[name]
    assert where in refusal(tmp_path, document)


@pytest.mark.parametrize(
    ("place", "value", "text"),
    [
        ("launcher", "mpirun", "runs[1].launcher is 'mpirun', expected process or torchrun"),
        ("run_id", "../a", "runs[1].run_id is '../a', expected the name of a folder"),
        ("run_id", "a", "two runs have the same run_id"),
        ("arguments", [1], "runs[1].arguments is 1, expected str"),
        ("environment", {"A": 1}, "runs[1].environment.A is 1, expected str"),
    ],
)
def test_a_runs_values_are_checked(place: str, value: object, text: str, tmp_path: Path) -> None:
    assert text in refusal(tmp_path, changed(place, value, run=True))


@pytest.mark.parametrize("document", [[], None, {}, {**DOCUMENT, "version": 2}, {**DOCUMENT, "runs": [3]}])
def test_another_document_is_refused(document: object, tmp_path: Path) -> None:
    assert "expected" in refusal(tmp_path, document)


def test_the_environment_names_the_document() -> None:
    with pytest.raises(DocumentRefused, match="TRAINDYNO_JOB_DOCUMENT"):
        find_document({})
    channel = {"SM_CHANNEL_RUNS": "/opt/ml/input/data/runs"}
    assert find_document({"TRAINDYNO_JOB_DOCUMENT": "j1.json", **channel}) == Path("/opt/ml/input/data/runs/j1.json")
    assert find_document({"TRAINDYNO_JOB_DOCUMENT": "/elsewhere/j1.json", **channel}) == Path("/elsewhere/j1.json")


def test_a_parent_without_a_readable_document_says_so_and_fails(tmp_path: Path) -> None:
    job = SharedJob(root=tmp_path, runs=[run_document("a", launcher="mpirun")])
    exit_code, output = job.carry()
    assert exit_code == 1
    text = "runs[0].launcher is 'mpirun', expected process or torchrun"
    assert text in output
    assert text in (tmp_path / "algo-1/output/failure").read_text()


def test_the_parent_is_python_3_8() -> None:
    files = imported_files(["traindyno.parent.program"], REPOSITORY)
    assert "traindyno/core/jobs/journal_format.py" in files
    for path in files.values():
        ast.parse(path.read_text(), feature_version=(3, 8))


@pytest.mark.parametrize(
    ("instance_type", "gpus", "processes"),
    [("local.gpu", "4", "4"), ("local.gpu", "0", "1"), ("local.cpu", "4", "1"), ("ml.p4d.24xlarge", "4", "1")],
)
def test_each_gpu_of_this_machine_has_a_process(tmp_path: Path, instance_type: str, gpus: str, processes: str) -> None:
    """The lab's table does not know how many there are; of other types it knows it, and the document says it."""
    torchrun = tmp_path / "torchrun.py"
    torchrun.write_text("import sys; print(sys.argv[sys.argv.index('--nproc_per_node') + 1])")
    job = SharedJob(
        root=tmp_path,
        runs=[run_document("a", launcher="torchrun")],
        limits={"instance_type": instance_type},
        environment={"SM_NUM_GPUS": gpus, TORCHRUN_VARIABLE: str(torchrun)},
    )
    code, output = job.carry()
    assert (code, "[a] " + processes in output.splitlines()) == (0, True), output
