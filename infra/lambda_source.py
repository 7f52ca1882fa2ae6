"""The one source asset of every function: our packages and cattrs, copied without Docker or a network."""

import shutil
import sysconfig
from pathlib import Path

REPO_ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("core", "sagemaker", "report", "aws", "store", "lab")
OWN = ("traindyno/__init__.py", *(f"traindyno/{room}" for room in ROOMS), "lambdas")
# cattrs and what it imports: pure Python, so a copy of what is installed here runs on any Lambda.
INSTALLED = ("cattrs", "attrs", "attr", "typing_extensions.py")
LEFT_OUT = ("__pycache__", "*.pyc", "*.pyi", "py.typed", "preconf")


def stage_lambda_source(folder: Path, root: Path = REPO_ROOT) -> Path:
    """Fill ``folder`` with what every function is made of."""
    installed = Path(sysconfig.get_paths()["purelib"])
    for base, names in ((root, OWN), (installed, INSTALLED)):
        for name in names:
            _copy(base / name, folder / name)
    return folder


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns(*LEFT_OUT))
    else:
        shutil.copyfile(source, target)
