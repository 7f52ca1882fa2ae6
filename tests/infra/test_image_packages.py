"""The check that an image's build makes of its packages, over the recorded bases with their real
metadata.
"""

import re
import runpy
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.infra.image_packages import (
    install,
    own_requirements,
    read_additions,
    read_base,
    requirements_file,
    unmet,
)
from tests.infra.synthesis import REPO_ROOT

SCRIPT = REPO_ROOT / "images/check_packages.py"
CHECK: Any = SimpleNamespace(**runpy.run_path(str(SCRIPT)))
PYTORCH = ("cpu", "efa")
# The Neuron base installs these without a version, for sagemaker, transformers and torch.
NEURON_HAS = {"packaging", "psutil", "pydantic", "torch"}
UPPER_BOUNDS = {"<", "<=", "==", "~="}


def conflicting(package: str, version: str, requires: list[str]) -> dict[str, dict[str, Any]]:
    return {package: {"version": version, "requires": requires}}


@pytest.mark.parametrize("image", PYTORCH)
def test_the_labs_additions_run_with_the_bases_published_lock(image: str, tmp_path: Path) -> None:
    assert unmet(CHECK, image, read_base(image), tmp_path) == []


def test_the_neuron_base_may_hold_a_protobuf_against_its_own_toolkit(tmp_path: Path) -> None:
    base = read_base("neuron")
    assert base["protobuf"]["version"] == "3.20.3"
    assert "protobuf>=5.28.1" in base["sagemaker-training"]["requires"]
    lines = unmet(CHECK, "neuron", base, tmp_path)
    missing = [re.fullmatch(r"\S+ requires (\S+), which is not installed", line) for line in lines]
    assert {
        Requirement(line[1]).name if line else "another problem" for line in missing
    } == NEURON_HAS


@pytest.mark.parametrize("numpy", ["1.26.4", "2.4.6"])
def test_neuron_images_packages_run_with_numpy_1_and_numpy_2(numpy: str, tmp_path: Path) -> None:
    """The base pins numpy 1."""
    base = {**read_base("neuron"), **conflicting("numpy", numpy, [])}
    assert not [
        line for line in unmet(CHECK, "neuron", base, tmp_path) if "not installed" not in line
    ]


@pytest.mark.parametrize("image", PYTORCH)
@pytest.mark.parametrize(
    "unrelated",
    [
        conflicting("mlflow", "3.9.0", ["pandas<2", "numpy<1", "absent-package"]),
        conflicting("transformer-engine", "2.17.0", ["onnxscript", "torch>=3"]),
        conflicting("torch", "2.13.0", ["nvidia-nccl-cu13==2.30.7"]),
    ],
    ids=["mlflow", "transformer-engine", "torch's own libraries"],
)
def test_a_conflict_of_unimported_packages_stops_no_build(
    image: str, unrelated: dict[str, dict[str, Any]], tmp_path: Path
) -> None:
    assert unmet(CHECK, image, {**read_base(image), **unrelated}, tmp_path) == []


@pytest.mark.parametrize("image", PYTORCH)
@pytest.mark.parametrize(
    ("package", "version", "problem"),
    [
        ("numpy", "1.16.0", "transformers requires numpy>=1.17, found 1.16.0"),
        ("torch", "2.5.0", "s3torchconnector requires torch!=2.5.0,>=2.0.1, found 2.5.0"),
        # required by a package that the lab does not add
        ("rich", "7.0", "typer requires rich>=12.3.0, found 7.0"),
    ],
)
def test_a_conflict_of_the_labs_additions_or_their_requirements_fails_the_build(
    image: str, package: str, version: str, problem: str, tmp_path: Path
) -> None:
    base = {**read_base(image), **conflicting(package, version, [])}
    assert problem in unmet(CHECK, image, base, tmp_path)


@pytest.mark.parametrize("image", PYTORCH)
def test_a_missing_package_fails_the_build(image: str, tmp_path: Path) -> None:
    base = {name: row for name, row in read_base(image).items() if name != "filelock"}
    assert [line for line in unmet(CHECK, image, base, tmp_path) if line.endswith("not installed")]


def bounded_above(additions: dict[str, str]) -> set[str]:
    """Packages of which an addition refuses newer versions; torch is the base itself."""
    requirements = [
        Requirement(line)
        for name, version in additions.items()
        for line in own_requirements(name, version)
    ]
    names = {
        str(canonicalize_name(requirement.name))
        for requirement in requirements
        if any(clause.operator in UPPER_BOUNDS for clause in requirement.specifier)
    }
    return names - {"torch"}


@pytest.mark.parametrize("image", [*PYTORCH, "neuron"])
def test_image_pins_every_package_bounded_from_above_by_its_additions(image: str) -> None:
    """No update of the base makes one too new.

    The base's lock settles what its own packages require.
    """
    additions = read_additions(image)
    assert {"click", "dill", "fsspec"} <= bounded_above(additions)
    assert bounded_above(additions) <= set(additions)


@pytest.mark.parametrize("image", PYTORCH)
def test_a_base_with_a_newer_version_of_a_bounded_package_stops_no_build(
    image: str, tmp_path: Path
) -> None:
    newer = {
        name: {"version": "2999.1", "requires": []} for name in bounded_above(read_additions(image))
    }
    assert unmet(CHECK, image, {**read_base(image), **newer}, tmp_path) == []


@pytest.mark.parametrize("image", PYTORCH)
def test_the_images_add_only_missing_old_or_unbounded_packages(image: str, tmp_path: Path) -> None:
    base = read_base(image)
    additions = read_additions(image)
    too_old = {name for name in additions if name in base} - bounded_above(additions)
    assert too_old == {"idna", "pyarrow"}
    for name in too_old:
        kept = {other: version for other, version in additions.items() if other != name}
        folder = tmp_path / name
        folder.mkdir()
        assert unmet(CHECK, image, base, folder, additions=kept), (
            f"{name} {base[name]['version']} of the base would do"
        )


def test_the_script_ends_a_build_with_its_findings(tmp_path: Path) -> None:
    """The Dockerfile runs it in the same way, beside requirements.txt."""
    script = tmp_path / SCRIPT.name
    script.write_bytes(SCRIPT.read_bytes())
    (tmp_path / "requirements.txt").write_text("# a comment\npytest==1\n")
    assert subprocess.run([sys.executable, script], check=False).returncode == 0
    installed = tmp_path / "site"
    installed.mkdir()
    install(installed, conflicting("pytest", "1", ["absent-package"]), {})
    ended = subprocess.run(
        [sys.executable, script],
        env={"PYTHONPATH": str(installed)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (
        1,
        "pytest requires absent-package, which is not installed\n",
    )


@pytest.mark.parametrize("image", [*PYTORCH, "neuron"])
def test_the_check_starts_from_every_added_package(image: str) -> None:
    added = CHECK.read_added(requirements_file(image).read_text())
    assert {canonicalize_name(name) for name in added} == set(read_additions(image))
    dockerfile = (REPO_ROOT / "images" / image / "Dockerfile").read_text()
    assert "python /opt/traindyno/check_packages.py" in dockerfile
    assert "pip check" not in dockerfile
