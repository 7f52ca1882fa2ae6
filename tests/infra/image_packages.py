"""The packages of the images: what is recorded of their bases, what the lab adds, and what those
require.
"""

import json
import sys
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.infra.synthesis import REPO_ROOT

IN_THE_IMAGE = {
    "python_version": "3.12",
    "sys_platform": "linux",
    "platform_machine": "x86_64",
    "extra": "",
}
# The bases need other versions of these than this repository is tested with; they state these
# requirements.
NEEDED_BY_BASES = {
    "pyarrow": [],
    "pandas": ["numpy>=1.26.0", "python-dateutil>=2.8.2", "pytz>=2020.1", "tzdata>=2022.7"],
    "tzdata": [],
}


def requirements_file(image: str) -> Path:
    own = REPO_ROOT / "images" / image / "requirements.txt"
    return own if own.exists() else REPO_ROOT / "images/pytorch_requirements.txt"


def read_base(name: str) -> dict[str, dict[str, Any]]:
    document = json.loads((REPO_ROOT / "tests/data/image_bases" / f"{name}.json").read_text())
    return dict(document["packages"])


def read_additions(image: str) -> dict[str, str]:
    pairs = [line.split("==") for line in read_pins(requirements_file(image))]
    return {canonicalize_name(package): version for package, version in pairs}


def read_pins(file: Path) -> list[str]:
    """The packages of a requirements file as ``name==version``, without their hashes."""
    return [
        line.partition(" ")[0]
        for line in file.read_text().splitlines()
        if not line.startswith(("#", " "))
    ]


def own_requirements(name: str, version: str) -> list[str]:
    if name in NEEDED_BY_BASES:
        return list(NEEDED_BY_BASES[name])
    assert metadata.version(name) == version, (
        f"{name}=={version} is not what this repository is tested with"
    )
    requirements = map(Requirement, metadata.requires(name) or [])
    return [
        f"{requirement.name}{requirement.specifier}"
        for requirement in requirements
        if not requirement.marker or requirement.marker.evaluate(IN_THE_IMAGE)
    ]


def install(
    folder: Path, base: Mapping[str, Mapping[str, Any]], additions: Mapping[str, str]
) -> None:
    """The metadata that pip leaves, of the base's packages and of the additions over them."""
    packages = {name: (row["version"], row["requires"] or []) for name, row in base.items()}
    packages |= {
        name: (version, own_requirements(name, version)) for name, version in additions.items()
    }
    for name, (version, requires) in packages.items():
        installed = folder / f"{name.replace('-', '_')}-{version}.dist-info"
        installed.mkdir()
        lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
        (installed / "METADATA").write_text(
            "\n".join([*lines, *(f"Requires-Dist: {requirement}" for requirement in requires)])
            + "\n"
        )


def unmet(
    check: ModuleType,
    image: str,
    base: Mapping[str, Mapping[str, Any]],
    folder: Path,
    *,
    additions: Mapping[str, str] | None = None,
) -> list[str]:
    """What the build's own check reports after the additions were installed over the base."""
    install(folder, base, additions or read_additions(image))
    added = check.read_added(requirements_file(image).read_text())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [str(folder)])
        return sorted(check.unmet_requirements(added))
