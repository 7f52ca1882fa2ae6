"""Fails the build if a package that the lab adds, or one that those require, is missing or has
another version.

`pip check` would also fail for conflicts of packages that no job of the lab imports: a base image
holds hundreds of packages, and AWS changes them under the same tag.
"""

import sys
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

REQUIREMENTS = Path(__file__).with_name("requirements.txt")
# The base is built around its own torch, and may replace a library that torch names; importing
# torch tests it.
BASES_OWN = "torch"


def read_added(requirements: str) -> list[str]:
    """The names of the packages that the lab adds. Their hashes are in the lines below theirs."""
    lines = (line.partition("#")[0].rstrip("\\ ") for line in requirements.splitlines())
    return [Requirement(line).name for line in lines if line and not line.startswith(" ")]


def unmet_requirements(added: list[str]) -> list[str]:
    """One sentence for each requirement of the added packages, and of those that they require, that
    is not met.
    """
    unmet: list[str] = []
    seen: set[str] = set()
    left = [canonicalize_name(name) for name in added]
    while left:
        name = left.pop()
        if name in seen or name == BASES_OWN:
            continue
        seen.add(name)
        for requirement in _requirements_of(name):
            found = _version_of(requirement.name)
            if found is None:
                unmet.append(f"{name} requires {requirement}, which is not installed")
                continue
            if not requirement.specifier.contains(found, prereleases=True):
                unmet.append(f"{name} requires {requirement}, found {found}")
            left.append(canonicalize_name(requirement.name))
    return unmet


def _requirements_of(name: str) -> list[Requirement]:
    requirements = map(Requirement, metadata.requires(name) or ())
    return [
        each for each in requirements if each.marker is None or each.marker.evaluate({"extra": ""})
    ]


def _version_of(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


if __name__ == "__main__":
    if unmet := unmet_requirements(read_added(REQUIREMENTS.read_text())):
        sys.exit("\n".join(unmet))
