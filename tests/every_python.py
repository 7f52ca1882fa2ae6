"""Runs the unit and infra tests on every Python of this machine that the project supports, each in its own environment.

``make pythons``. An environment is ``.envs/py<version>``. It holds what the unit and infra tests need, without PyTorch.
"""

import os
import re
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
OLDEST, FIRST_UNSUPPORTED = (3, 11), (3, 15)
TESTS = ("tests/unit", "tests/infra")
# tests/infra/test_images.py reads their requirements; they run only with PyTorch, which these tests do without.
READ_BY_TESTS = (
    *("transformers", "tokenizers", "safetensors", "huggingface-hub", "hf-xet", "regex"),
    *("accelerate", "s3torchconnector", "s3torchconnectorclient"),
    *("hypothesis", "sortedcontainers"),
)
ASK_VERSION = "import sys; print('.'.join(map(str, sys.version_info[:3])))"


def main() -> int:
    found = interpreters()
    if not found:
        sys.stdout.write(f"no Python from {OLDEST} on was found on the PATH, in /usr/bin or in ~/.pyenv/versions\n")
        return 1
    statuses = {version: _run_tests(version, program) for version, program in sorted(found.items())}
    for version, status in statuses.items():
        sys.stdout.write(f"Python {'.'.join(map(str, version))}: {'passed' if status == 0 else 'FAILED'}\n")
    return max(statuses.values())


def interpreters() -> dict[tuple[int, ...], Path]:
    """One program for each version that this machine has."""
    folders = [Path(folder) for folder in os.environ["PATH"].split(os.pathsep)]
    folders += [Path("/usr/bin"), *Path("~/.pyenv/versions").expanduser().glob("*/bin")]
    found: dict[tuple[int, ...], Path] = {}
    for program in (path for folder in folders for path in sorted(folder.glob("python3*"))):
        version = _version(program)
        if version and OLDEST <= version < FIRST_UNSUPPORTED:
            found.setdefault(version, program)
    return found


def _version(program: Path) -> tuple[int, ...] | None:
    if program.name.removeprefix("python3").strip(".0123456789") or ".venv" in program.parts:
        return None
    asked = subprocess.run([program, "-c", ASK_VERSION], capture_output=True, text=True, check=False)
    return tuple(int(part) for part in asked.stdout.split(".")) if asked.returncode == 0 else None


def _run_tests(version: tuple[int, ...], program: Path) -> int:
    name = ".".join(map(str, version))
    began = time.monotonic()
    python = _environment(name, program)
    sys.stdout.write(f"Python {name}: environment ready after {time.monotonic() - began:.0f} s\n")
    sys.stdout.flush()
    command = [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", "--numprocesses", "logical", *TESTS]
    return subprocess.run(command, cwd=ROOT, check=False, env={**os.environ, "PYTHONPATH": str(ROOT)}).returncode


def _environment(name: str, program: Path) -> Path:
    python = ROOT / ".envs" / f"py{name}" / "bin" / "python"
    requirements = ROOT / "requirements" / "lock.txt"
    ready = python.parent.parent / ".installed"
    if ready.exists() and ready.stat().st_mtime >= requirements.stat().st_mtime:
        return python
    if not python.exists():
        subprocess.run([program, "-m", "venv", python.parent.parent], check=True)
    wanted = python.parent.parent / "requirements.txt"
    wanted.write_text(locked_lines(requirements.read_text(), with_their_own(named_by_project()) | {*READ_BY_TESTS}))
    install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*install, "--no-deps", "--require-hashes", "-r", str(wanted)], check=True)
    ready.touch()
    return python


def named_by_project() -> list[str]:
    """What the unit and infra tests need, as pyproject.toml says it."""
    document = tomllib.loads((ROOT / "pyproject.toml").read_text())
    project, groups = document["project"], document["dependency-groups"]
    return [*project["dependencies"], *project["optional-dependencies"]["lab"], *groups["unit"]]


def with_their_own(requirements: Iterable[str]) -> set[str]:
    """The names of these packages, and of those that they require in this environment."""
    found: set[str] = set()
    left = [Requirement(each) for each in requirements]
    while left:
        name = canonicalize_name(left.pop().name)
        if name not in found:
            found.add(name)
            requires = map(Requirement, metadata.requires(name) or ())
            left += [each for each in requires if each.marker is None or each.marker.evaluate({"extra": ""})]
    return found


def locked_lines(text: str, names: set[str]) -> str:
    """The lines of a requirements file for these packages, with their hashes."""
    packages = re.split(r"\n(?=\S)", text.strip())
    return "\n".join(each for each in packages if canonicalize_name(each.partition("==")[0]) in names) + "\n"


if __name__ == "__main__":
    sys.exit(main())
