"""Each package is installed by its version and hashes; PyTorch, whose wheels differ by index, by its version."""

import re
import runpy
import subprocess
import tomllib
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.every_python import locked_lines, named_by_project, with_their_own

REPO_ROOT = Path(__file__).resolve().parents[2]
HASHES: Any = SimpleNamespace(**runpy.run_path(str(REPO_ROOT / "requirements/hashes.py")))
FILES = HASHES.requirements_files()
BY_INDEX = set(HASHES.DIFFER_BY_INDEX)
LOCKED = re.compile(r"[a-z0-9._-]+==[a-z0-9.]+( \\\n    --hash=sha256:[0-9a-f]{64})+")
PLATFORMS = (("linux", "x86_64"), ("linux", "aarch64"), ("darwin", "arm64"))
ENVIRONMENTS = [
    {"python_version": version, "python_full_version": f"{version}.2", "extra": ""}
    | {"sys_platform": system, "platform_system": system.capitalize(), "platform_machine": machine}
    for version in ("3.11", "3.12", "3.13")
    for system, machine in PLATFORMS
]
PIP_INSTALLS = re.compile(r"pip (?:install|download) .*?(?:-r|--requirement) (\S+)")


def named(path: Path) -> str:
    return path.relative_to(REPO_ROOT).as_posix()


def packages_of(path: Path) -> list[str]:
    """Each package with its hashes."""
    return re.split(r"\n(?=\S)", "\n".join(line for line in path.read_text().splitlines() if not line.startswith("#")))


@pytest.mark.parametrize("path", FILES, ids=named)
def test_each_package_of_a_requirements_file_has_hashes_but_pytorch(path: Path) -> None:
    packages = packages_of(path)
    names = {each.partition("==")[0] for each in packages}
    if names & BY_INDEX:
        assert names <= BY_INDEX
        assert all(re.fullmatch(r"[a-z-]+==[0-9.]+", each) for each in packages)
    else:
        assert [each[:80] for each in packages if not LOCKED.fullmatch(each)] == []


def commands() -> list[str]:
    """What the Makefile and the Dockerfiles run."""
    environments = (f".envs/{name}/.installed" for name in ("lint", "mutants", "golden", "model_trainer", "syne_tune"))
    targets = ["install", "image-tables", "hashes", *environments]
    made = subprocess.run(
        ["make", "--dry-run", "--always-make", *targets], cwd=REPO_ROOT, check=True, capture_output=True, text=True
    )
    dockerfiles = sorted(REPO_ROOT.glob("images/*/Dockerfile"))
    return [*made.stdout.splitlines(), *(line for file in dockerfiles for line in file.read_text().splitlines())]


def test_every_installation_of_a_requirements_file_requires_hashes() -> None:
    installs = {line: match[1] for line in commands() if (match := PIP_INSTALLS.search(line))}
    assert {Path(name).stem for name in installs.values()} >= {
        *("requirements", "cloud", "lint", "mutants", "golden", "model_trainer", "image_tables", "syne_tune", "uv")
    }
    assert [name for line, name in installs.items() if "--require-hashes" not in line] == []


def test_no_package_is_installed_by_a_name_alone() -> None:
    installs = [line for line in commands() if "pip install" in line and not PIP_INSTALLS.search(line)]
    # This checkout, with the setuptools of requirements.txt
    assert len(installs) == 1
    assert installs[0].endswith("--no-deps --no-build-isolation --editable .")


def test_npm_runs_no_script_of_a_package() -> None:
    (install,) = [line for line in commands() if "npm(sys.argv[1:])" in line]
    assert " ci --ignore-scripts " in install


def test_the_list_is_complete_on_each_python_and_platform() -> None:
    """They are installed without dependencies, and were resolved on one Python and platform."""
    pins = {canonicalize_name(name) for name in HASHES.pinned_versions((REPO_ROOT / "requirements.txt").read_text())}
    missing, read = set(), 0
    for name in sorted(pins):
        try:
            requires = [Requirement(each) for each in metadata.requires(name) or ()]
        except metadata.PackageNotFoundError:  # an environment without PyTorch has some of them
            continue
        read += 1
        needed = [each.name for each in requires if not each.marker or any(map(each.marker.evaluate, ENVIRONMENTS))]
        missing |= {f"{each} for {name}" for each in needed if canonicalize_name(each) not in pins | BY_INDEX}
    assert read > 50
    assert missing == set()


def test_pytorch_has_the_version_that_pyproject_names() -> None:
    document = tomllib.loads((REPO_ROOT / "pyproject.toml").read_text())
    (torch,) = [each for each in document["project"]["optional-dependencies"]["train"] if each.startswith("torch==")]
    assert packages_of(REPO_ROOT / "requirements/torch.txt") == [torch]


def test_another_pythons_environment_has_what_the_tests_need_with_hashes() -> None:
    names = with_their_own(named_by_project())
    assert {"boto3", "botocore", "aws-cdk-lib", "jsii", "pytest", "execnet"} <= names
    packages = re.split(r"\n(?=\S)", locked_lines((REPO_ROOT / "requirements.txt").read_text(), names).strip())
    assert {canonicalize_name(each.partition("==")[0]) for each in packages} == names
    assert all(LOCKED.fullmatch(each) for each in packages)
