"""Environments of the frozen libraries, each with an interpreter of their time and every package
pinned.
"""

import subprocess
from pathlib import Path

from traindyno.bundle import REPO_ROOT

PYTHONS = ("3.8", "3.9", "3.10")  # those for which all pinned packages have wheels
CHECK = "import torch, transformers, datasets; print(torch.__version__, transformers.__version__)"


class NoInterpreter(Exception):
    """None of the Python versions of the frozen libraries is on this machine."""


def make_environment(name: str) -> Path:
    """Make it from its files in experiments/requirements, anew where they have changed.

    Returns its Python.

    Raises NoInterpreter.
    """
    folder = REPO_ROOT / ".envs" / name.replace("_", "-")
    python = folder / "bin" / "python"
    mark = folder / ".installed"
    lists = REPO_ROOT / "experiments" / "requirements"
    locked = lists / f"{name}.txt"
    torch = lists / f"{name.removeprefix('frozen_')}.txt"
    wanted = locked.read_text() + torch.read_text()
    if not mark.exists() or mark.read_text() != wanted:
        subprocess.run([interpreter(), "-m", "venv", "--clear", folder], check=True)
        # pip leaves out dependencies: it would look for fitting versions of hundreds of packages
        # for minutes.
        pip = [
            str(python),
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--no-deps",
        ]
        subprocess.run([*pip, "--require-hashes", "-r", str(locked)], check=True)
        subprocess.run([*pip, "-r", str(torch)], check=True)
        subprocess.run([python, "-c", CHECK], check=True, stdout=subprocess.DEVNULL)
        mark.write_text(wanted)
    return python


def interpreter() -> Path:
    """The oldest that fits: AWS's images of that time have Python 3.8."""
    for version in PYTHONS:
        for folder in (
            *Path("~/.pyenv/versions").expanduser().glob(f"{version}.*/bin"),
            Path("/usr/bin"),
        ):
            program = folder / f"python{version}"
            if program.exists():
                return program
    raise NoInterpreter(
        f"the frozen libraries need Python {', '.join(PYTHONS[:-1])} or {PYTHONS[-1]}; none was "
        "found in ~/.pyenv/versions or /usr/bin"
    )
