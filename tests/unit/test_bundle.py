import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterable
from pathlib import Path

import pytest

from traindyno.bundle import REPO_ROOT, SourceRefused, pack, script_files, training_files
from traindyno.import_closure import imported_files

# Folders of the package of which a container of the built-in tasks has files
TRAVELLING = {
    "",
    "callbacks",
    "core",
    "core/documents",
    "core/instances",
    "core/jobs",
    "core/measurement",
    "core/run",
    "core/search",
    "core/serving",
    "core/step_log",
    "core/suite",
    "figures",
    "figures/in_job",
    "parent",
}


def test_the_same_files_give_the_same_bytes_at_any_time(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("print(1)")
    first = pack(script_files(tmp_path))
    os.utime(tmp_path / "train.py", (1, 1))
    assert pack(script_files(tmp_path)) == first


def unpacked(program: str, folder: Path) -> Path:
    """A folder with what a job gets of a script's folder."""
    source = folder / "source"
    target = folder / "target"
    source.mkdir()
    (source / "train.py").write_text(program)
    with tarfile.open(fileobj=io.BytesIO(pack(script_files(source)))) as opened:
        opened.extractall(target)
    return target


def test_the_callbacks_import_from_the_unpacked_tarball_alone(tmp_path: Path) -> None:
    target = unpacked("from traindyno.callbacks import step_log; print('imported')", tmp_path)
    ran = subprocess.run(
        [sys.executable, "-S", str(target / "train.py")],
        capture_output=True,
        text=True,
        check=False,
        cwd=target,
    )
    assert ran.stdout.strip() == "imported", ran.stderr


def test_the_parent_of_a_shared_job_needs_the_unpacked_tarball_alone(tmp_path: Path) -> None:
    target = unpacked("", tmp_path)
    environment = {
        "SM_OUTPUT_DIR": str(tmp_path / "output"),
        "TRAINDYNO_JOB_FOLDER": str(tmp_path / "checkpoints"),
    }
    ran = subprocess.run(
        [sys.executable, "-S", "traindyno_runs.py"],
        capture_output=True,
        text=True,
        check=False,
        cwd=target,
        env=environment,
    )
    assert "the environment has no TRAINDYNO_JOB_DOCUMENT" in ran.stderr
    assert ran.returncode == 1


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("traindyno/x.py", r"rename traindyno\. The job adds a package of that name"),
        ("traindyno_runs.py", r"rename traindyno_runs\.py\. The job adds a program of that name"),
    ],
)
def test_a_name_of_ours_is_refused(tmp_path: Path, name: str, words: str) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("")
    with pytest.raises(SourceRefused, match=words):
        script_files(tmp_path)


def test_a_too_large_folder_is_refused(tmp_path: Path) -> None:
    with (tmp_path / "data.bin").open("wb") as file:
        file.truncate(257 * 2**20)
    words = "257 MiB in 1 files: pass data as workload.dataset. The source may have at most 256 MiB"
    with pytest.raises(SourceRefused, match=words):
        script_files(tmp_path)


def test_the_built_in_tarball_has_its_entry_point_at_the_top() -> None:
    packed = training_files()
    assert {"traindyno_train.py", "training/main.py"} <= set(packed)
    tops = {
        "traindyno_train.py",
        "traindyno_runs.py",
        "traindyno_ranks.py",
        "traindyno",
        "training",
    }
    assert {name.split("/")[0] for name in packed} == tops


def test_the_container_shares_the_modules_of_the_contract_with_the_lab() -> None:
    """The contract is a table of ARCHITECTURE.md: rooms of the core and of the figures, and modules
    with what they import.
    """
    page = (REPO_ROOT / "ARCHITECTURE.md").read_text()
    table = page.split("## The contract with the container")[1].split("\n## ")[0]
    named = re.findall(r"^\| `((?:core|figures)/[\w/.]+)` \|", table, re.MULTILINE)
    rooms = {f"traindyno/{name}" for name in named if not name.endswith(".py")}
    modules = [
        f"traindyno.{name.removesuffix('.py').replace('/', '.')}"
        for name in named
        if name.endswith(".py")
    ]

    def outside(names: Iterable[str]) -> set[str]:
        return {
            name
            for name in names
            if name.startswith(("traindyno/core/", "traindyno/figures/"))
            and folder_of(name) not in rooms
        }

    assert rooms < {folder_of(name) for name in training_files()}
    assert outside(training_files()) == outside(imported_files(modules, REPO_ROOT))


def test_neither_the_suite_nor_a_feature_travels() -> None:
    """The lab writes a record of the run. With the suite's parsers there were 212 files of 29,026
    lines, and 202 of 27,334 without them.
    """
    names = [name for name in training_files() if name.startswith("traindyno/")]
    assert {"/".join(name.split("/")[1:-1][:2]) for name in names} == TRAVELLING
    assert {name for name in names if "/suite/" in name} == {
        "traindyno/core/suite/__init__.py",
        "traindyno/core/suite/choices.py",
    }


def test_a_changed_sentence_changes_no_code_of_jobs(tmp_path: Path) -> None:
    """The address of prepared tokens contains the digest of the code: with another digest they are
    made again.
    """
    for package in ("traindyno", "training"):
        shutil.copytree(
            REPO_ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__")
        )
    before = pack(training_files(tmp_path))
    for folder in (
        "core/verdict",
        "core/suite/checks",
        "report",
        "sagemaker",
        "lab",
        "store",
        "aws",
        "cli",
    ):
        for path in (tmp_path / "traindyno" / folder).rglob("*.py"):
            change(path)
    change(tmp_path / "traindyno/core/planning/plan.py")
    assert pack(training_files(tmp_path)) == before
    for name in (
        "training/run/train.py",
        "traindyno/core/step_log/line.py",
        "traindyno/core/instances/data/instance_types.json",
        "traindyno/core/instances/data/devices.json",
    ):
        change(tmp_path / name)
        after = pack(training_files(tmp_path))
        assert after != before, name
        before = after


def change(path: Path) -> None:
    path.write_text(path.read_text() + "\n")


def folder_of(name: str) -> str:
    return name.rpartition("/")[0]


def test_without_a_checkout_the_training_code_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceRefused, match=r"has no folder training.*clone it"):
        training_files(tmp_path)


@pytest.mark.parametrize(
    "folder", sorted({path.parent for path in (REPO_ROOT / "experiments").glob("*/train.py")})
)
def test_every_file_of_a_published_experiment_travels(folder: Path) -> None:
    """What the rule leaves out, such as a link to another experiment's module, would be missing in
    the container.
    """
    names = {path.name for path in folder.iterdir() if path.suffix in {".py", ".txt"}}
    assert {"train.py", "arguments.py"} <= names
    assert names <= set(script_files(folder))


def test_experiments_sharing_a_module_have_equal_copies() -> None:
    experiments = REPO_ROOT / "experiments"
    copies = [experiments / name / "text_blocks.py" for name in ("gpt2_compiler", "gptj_parallel")]
    assert len({path.read_text() for path in copies}) == 1
