"""Writes the hashes of pinned versions into the requirements files: ``make hashes``.

A version has a hash for each of its files, so that the lists hold for every index, Python and platform. uv reads them
from the index without a download.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# An index may serve its own builds of these: for CPUs, for a version of CUDA. They are installed without hashes.
DIFFER_BY_INDEX = ("torch", "torch-xla")
FOLDERS = ("requirements", "images", "experiments/requirements")
PINNED = re.compile(r"^([A-Za-z0-9._-]+)==[^\s;]+", re.MULTILINE)
OPTIONS = ("--no-config", "--quiet", "--no-deps", "--generate-hashes", "--no-annotate", "--no-header", "--universal")


def requirements_files(root: Path = ROOT) -> list[Path]:
    found = (path for folder in FOLDERS for path in (root / folder).glob("**/*.txt"))
    return [root / "requirements.txt", *sorted(found)]


def pinned_versions(text: str) -> dict[str, str]:
    """Name → the requirement as written, such as ``boto3==1.44.5``."""
    return {match[1].lower(): match[0] for match in PINNED.finditer(text)}


def needs_hashes(text: str) -> bool:
    return not set(pinned_versions(text)) <= set(DIFFER_BY_INDEX)


def with_hashes(text: str, uv: Path) -> str:
    """The same versions below the same comment."""
    comment = "".join(line for line in text.splitlines(keepends=True) if line.startswith("#"))
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as versions:
        versions.write("\n".join(pinned_versions(text).values()))
        versions.flush()
        command = [str(uv), "pip", "compile", *OPTIONS, "--python-version", "3.11", versions.name]
        return comment + subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def main() -> None:
    uv = Path(sys.executable).with_name("uv")
    for path in requirements_files():
        text = path.read_text()
        if needs_hashes(text):
            path.write_text(with_hashes(text, uv))


if __name__ == "__main__":
    main()
