"""The wheel: what is inside, and what it does with the client's dependencies alone, without a
checkout.
"""

import re
import shutil
import subprocess
import sys
import zipfile
from importlib import metadata
from pathlib import Path

import pytest
import yaml

from tests.unit.suites import unprepared_document
from traindyno import __version__

REPO_ROOT = Path(__file__).resolve().parents[2]
BUILD = "import sys; from setuptools.build_meta import build_wheel; build_wheel(sys.argv[1])"
NEEDED_TO_BUILD = ("pyproject.toml", "README.md", "LICENSE")
BESIDE_OURS = ("training", "infra", "lambdas", "localcloud", "tests", "bench")
FILES = {
    "prices.yaml": "region: us-east-1\nas_of: 2026-11-21\nprices: {ml.g5.xlarge: 1.408}\n",
    "quotas.yaml": "region: us-east-1\nquotas:\n  ml.g5.xlarge for training job usage: 4\n"
    "  Number of instances across all training jobs: 8\n",
    "suite.yaml": yaml.safe_dump(unprepared_document()),
}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """The wheel is built in a copy of the tree: the other top-level packages stand beside ours
    there too.
    """
    tree = tmp_path_factory.mktemp("tree")
    out = tmp_path_factory.mktemp("dist")
    for name in NEEDED_TO_BUILD:
        shutil.copy(REPO_ROOT / name, tree / name)
    for name in ("traindyno", *BESIDE_OURS):
        shutil.copytree(
            REPO_ROOT / name,
            tree / name,
            ignore=shutil.ignore_patterns("__pycache__", "data/*.jsonl"),
        )
    subprocess.run(
        [sys.executable, "-c", BUILD, str(out)],
        cwd=tree,
        check=True,
        capture_output=True,
        timeout=120,
    )
    (path,) = out.glob("*.whl")
    return zipfile.ZipFile(path)


@pytest.fixture(scope="module")
def client(wheel: zipfile.ZipFile, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of packages as `pip install traindyno` leaves it: the wheel, and what the client
    depends on.
    """
    folder = tmp_path_factory.mktemp("site-packages")
    wheel.extractall(folder)
    (own,) = metadata.distributions(path=[str(folder)])
    for name in sorted(_closure(own.requires or [])):
        _link(metadata.distribution(name), folder)
    return folder


def test_traindyno_is_the_only_importable_package(wheel: zipfile.ZipFile) -> None:
    assert {name.split("/")[0] for name in wheel.namelist()} == {
        "traindyno",
        f"traindyno-{__version__}.dist-info",
    }


def test_types_data_and_licence_are_inside(wheel: zipfile.ZipFile) -> None:
    names = set(wheel.namelist())
    assert "traindyno/py.typed" in names
    assert f"traindyno-{__version__}.dist-info/licenses/LICENSE" in names
    data = {
        path.relative_to(REPO_ROOT).as_posix()
        for pattern in ("*.json", "*.css")
        for path in (REPO_ROOT / "traindyno").rglob(pattern)
    }
    assert data
    assert data <= names


def test_the_client_needs_neither_torch_nor_the_cdk(client: Path) -> None:
    installed = {path.name for path in client.iterdir()}
    assert {"boto3", "typer", "cattrs"} <= installed
    assert not {"torch", "transformers", "aws_cdk", "constructs", "sagemaker", "numpy"} & installed


def test_help_lists_the_commands(client: Path, tmp_path: Path) -> None:
    ran = _run(client, tmp_path, "traindyno", "--help")
    assert ran.returncode == 0, ran.stderr
    assert {"plan", "run", "report", "local"} <= set(re.findall(r"\w+", ran.stdout))


def test_a_plan_is_made_from_files(client: Path, tmp_path: Path) -> None:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    ran = _run(
        client,
        tmp_path,
        "traindyno",
        "plan",
        "suite.yaml",
        "--prices",
        "prices.yaml",
        "--quotas",
        "quotas.yaml",
    )
    assert ran.returncode == 0, ran.stderr
    assert "ml.g5.xlarge" in ran.stdout


def test_the_callbacks_import(client: Path, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(
        "from traindyno.callbacks import step_log; print(type(step_log).__name__)"
    )
    ran = _run(client, tmp_path, "script")
    assert (ran.stdout.strip(), ran.returncode) == ("StepLogger", 0), ran.stderr


@pytest.mark.parametrize("words", [("local", "up"), ("local",), ("list", "--local")])
def test_commands_needing_a_checkout_say_so(
    client: Path, tmp_path: Path, words: tuple[str, ...]
) -> None:
    ran = _run(client, tmp_path, "traindyno", *words)
    assert ran.returncode == 1
    assert "the local cloud is not installed" in ran.stderr
    assert "clone the repository" in ran.stderr


def _closure(requirements: list[str]) -> set[str]:
    """Names of the distributions that these requirements install here, their own requirements
    included.
    """
    names: set[str] = set()
    open_ = [requirement for requirement in requirements if "extra ==" not in requirement]
    while open_:
        (name,) = re.findall(r"^[\w.-]+", open_.pop())
        try:
            requires = metadata.requires(name) or []
        except metadata.PackageNotFoundError:  # a requirement of another platform or Python
            continue
        if name not in names:
            names.add(name)
            open_ += [requirement for requirement in requires if "extra ==" not in requirement]
    return names


def _link(distribution: metadata.Distribution, folder: Path) -> None:
    for top in {path.parts[0] for path in distribution.files or ()} - {"..", "__pycache__"}:
        if not (folder / top).exists():
            (folder / top).symlink_to(str(distribution.locate_file(top)))


def _run(client: Path, folder: Path, module: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Runs ``python -m module`` where only the standard library and the client's folder can be
    imported.
    """
    start = (
        f"import runpy, sys; sys.path[:0] = [{str(client)!r}, {str(folder)!r}]; sys.argv = "
        f"{[module, *words]!r}; runpy.run_module({module!r}, run_name='__main__', alter_sys=True)"
    )
    return subprocess.run(
        [sys.executable, "-I", "-S", "-c", start],
        cwd=folder,
        env={
            "HOME": str(folder),
            "AWS_EC2_METADATA_DISABLED": "true",
            "TRAINDYNO_STEP_LOG": str(folder / "log"),
        },
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
