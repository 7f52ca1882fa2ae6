"""Each package is installed by its version and hashes; PyTorch, whose wheels differ by index, by
its version.
"""

import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

REPO_ROOT = Path(__file__).resolve().parents[2]
LOCK = REPO_ROOT / "requirements/lock.txt"
# PyTorch's wheels differ by index: the other files have its version alone.
FILES = [
    path
    for folder in ("requirements", "images", "experiments/requirements")
    for path in sorted((REPO_ROOT / folder).rglob("*.txt"))
    if "torch_1_" not in path.name.removeprefix("frozen_") and not path.name.endswith("_torch.txt")
]
PINNED = re.compile(r"([a-z0-9._-]+==[a-z0-9.]+)( ; [^;\\\n]+)?")
LOCKED = re.compile(PINNED.pattern + r"( \\\n    --hash=sha256:[0-9a-f]{64})+")
PIP_INSTALLS = re.compile(r"pip (?:install|download) .*?(?:-r|--requirement) (\S+)")
PROJECT = tomllib.loads((REPO_ROOT / "pyproject.toml").read_text())
TOOLKITS = ("toolkit", "toolkit_with_shell")


def named(path: Path) -> str:
    return path.relative_to(REPO_ROOT).as_posix()


def packages_of(path: Path) -> list[str]:
    """Each package with its hashes."""
    return re.split(
        r"\n(?=\S)",
        "\n".join(line for line in path.read_text().splitlines() if not line.startswith("#")),
    )


@pytest.mark.parametrize("path", FILES, ids=named)
def test_each_package_of_a_requirements_file_has_hashes_but_pytorch(path: Path) -> None:
    assert [package[:80] for package in packages_of(path) if not LOCKED.fullmatch(package)] == []


def test_the_lock_has_the_versions_of_requirements_txt_but_pytorchs() -> None:
    plain = packages_of(REPO_ROOT / "requirements.txt")
    locked = [package.partition(" \\\n")[0] for package in packages_of(LOCK)]
    (torch,) = [
        requirement
        for requirement in PROJECT["project"]["optional-dependencies"]["train"]
        if requirement.startswith("torch==")
    ]
    assert [requirement for requirement in plain if not PINNED.fullmatch(requirement)] == []
    assert plain == sorted([*locked, torch], key=plain.index)
    assert not [
        requirement for requirement in plain if requirement.startswith(("nvidia", "triton"))
    ]


def test_uv_resolves_pytorch_by_the_requirements_of_its_cpu_build() -> None:
    (stated,) = PROJECT["tool"]["uv"]["dependency-metadata"]
    try:
        torch = metadata.distribution("torch")
    except metadata.PackageNotFoundError:
        pytest.skip("an environment without PyTorch")
    assert torch.version.partition("+")[0] == stated["version"]
    requires = [
        requirement for requirement in torch.requires or () if "extra ==" not in requirement
    ]
    assert set(stated["requires-dist"]) == {
        requirement
        for requirement in requires
        if not requirement.startswith(("nvidia", "cuda", "triton"))
    }


def commands() -> list[str]:
    """What the Makefile and the Dockerfiles run."""
    names = ("lint", "mutants", "golden", "model_trainer", "syne_tune", "trl", *TOOLKITS)
    targets = [
        "install",
        "image-tables",
        *(f".envs/{name}/.installed" for name in (*names, "unit", "uv")),
    ]
    made = subprocess.run(
        ["make", "--dry-run", "--always-make", *targets],
        cwd=REPO_ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    dockerfiles = sorted(REPO_ROOT.glob("images/*/Dockerfile"))
    return [
        *made.stdout.splitlines(),
        *(line for file in dockerfiles for line in file.read_text().splitlines()),
    ]


def test_an_installation_prints_errors_and_no_warnings() -> None:
    options = re.findall("^INSTALL := (.*)$", (REPO_ROOT / "Makefile").read_text(), re.MULTILINE)
    program = [sys.executable, *options[0].split(), "--no-index", "--find-links", "/no/where"]
    done = subprocess.run([*program, "nothing-here"], capture_output=True, text=True, check=False)
    said = (done.stdout + done.stderr).splitlines()
    assert said[-1:] == ["ERROR: No matching distribution found for nothing-here"]
    assert [line for line in said if not line.startswith("ERROR: ")] == []


def test_every_installation_of_a_requirements_file_requires_hashes() -> None:
    installs = {line: match[1] for line in commands() if (match := PIP_INSTALLS.search(line))}
    assert {Path(name).stem for name in installs.values()} >= {
        "lock",
        "cloud",
        "lint",
        "mutants",
        "golden",
        "model_trainer",
        "image_tables",
        "syne_tune",
        "trl",
        *TOOLKITS,
        "unit",
        "uv",
    }
    assert [name for line, name in installs.items() if "--require-hashes" not in line] == []


def test_no_package_is_installed_by_a_name_alone() -> None:
    installs = [
        line for line in commands() if "pip install" in line and not PIP_INSTALLS.search(line)
    ]
    # This checkout, with the setuptools of requirements.txt
    assert len(installs) == 1
    assert installs[0].endswith("--no-deps --no-build-isolation --editable .")


def test_npm_runs_no_script_of_a_package() -> None:
    (install,) = [line for line in commands() if "npm(sys.argv[1:])" in line]
    assert " ci --ignore-scripts " in install
