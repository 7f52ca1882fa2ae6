"""A document that this parent does not know ends the job with a text that says what is wrong."""

import ast
import json
from pathlib import Path

import pytest

from tests.unit.parent.shared_job import REPOSITORY, SharedJob, run_document
from traindyno.core.jobs.journal_format import TORCHRUN_VARIABLE
from traindyno.import_closure import imported_files
from traindyno.parent.document import DocumentRefused, find_document, read_document

DOCUMENT = SharedJob(root=Path(), runs=[run_document("a")]).document()
LACKING = {name: value for name, value in DOCUMENT.items() if name != "program"}


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        ({**DOCUMENT, "version": 2}, "got version 2, expected 1"),
        (LACKING, "program"),
        ({**DOCUMENT, "runs": [{"run_id": "a"}]}, "launcher"),
        ({**DOCUMENT, "runs": [3]}, "not as expected"),
        ([], "not as expected"),
    ],
)
def test_another_document_is_refused(document: object, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "document.json"
    path.write_text(json.dumps(document))
    with pytest.raises(DocumentRefused, match=problem) as refused:
        read_document(path)
    assert str(path) in str(refused.value)


def test_the_environment_names_the_document() -> None:
    with pytest.raises(DocumentRefused, match="TRAINDYNO_JOB_DOCUMENT"):
        find_document({})
    channel = {"SM_CHANNEL_RUNS": "/opt/ml/input/data/runs"}
    assert find_document({"TRAINDYNO_JOB_DOCUMENT": "j1.json", **channel}) == Path(
        "/opt/ml/input/data/runs/j1.json"
    )
    assert find_document({"TRAINDYNO_JOB_DOCUMENT": "/elsewhere/j1.json", **channel}) == Path(
        "/elsewhere/j1.json"
    )


def test_a_parent_without_a_readable_document_says_so_and_fails(tmp_path: Path) -> None:
    job = SharedJob(root=tmp_path, runs=[run_document("a")], limits={"version": 2})
    exit_code, output = job.carry()
    assert exit_code == 1
    text = "got version 2, expected 1"
    assert text in output
    assert text in (tmp_path / "algo-1/output/failure").read_text()


def test_the_parent_is_python_3_8() -> None:
    files = imported_files(["traindyno.parent.program"], REPOSITORY)
    assert "traindyno/core/jobs/journal_format.py" in files
    for path in files.values():
        ast.parse(path.read_text(), feature_version=(3, 8))


@pytest.mark.parametrize(
    ("instance_type", "gpus", "processes"),
    [
        ("local.gpu", "4", "4"),
        ("local.gpu", "0", "1"),
        ("local.cpu", "4", "1"),
        ("ml.p4d.24xlarge", "4", "1"),
    ],
)
def test_each_gpu_of_this_machine_has_a_process(
    tmp_path: Path, instance_type: str, gpus: str, processes: str
) -> None:
    """The lab's table does not know how many there are; of other types it knows it, and the
    document says it.
    """
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
