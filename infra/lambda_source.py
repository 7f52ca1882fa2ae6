"""The one source asset of every function: our packages, cattrs and boto3, copied without Docker or a network."""

import shutil
import sysconfig
from pathlib import Path

REPO_ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("core", "sagemaker", "report", "aws", "store", "lab")
OWN = ("traindyno/__init__.py", *(f"traindyno/{room}" for room in ROOMS), "lambdas")
# cattrs and boto3 with what they import: pure Python, so a copy of what is installed here runs on any Lambda. The
# runtime's own boto3 may be older than the requests that functions send.
CATTRS = ("cattrs", "attrs", "attr", "typing_extensions.py")
BOTO3 = ("boto3", "botocore", "s3transfer", "jmespath", "dateutil", "six.py", "urllib3")
# Service models are most of botocore's size; functions call these services.
SERVICES = frozenset(
    {
        *("cloudwatch", "dynamodb", "events", "logs", "pricing"),
        *("s3", "sagemaker", "sagemaker-runtime", "service-quotas", "sns", "stepfunctions"),
    }
)
MODEL_FOLDERS = frozenset({"botocore/data", "boto3/data"})
LEFT_OUT = ("__pycache__", "*.pyc", "*.pyi", "py.typed", "preconf", "examples")


def stage_lambda_source(folder: Path, root: Path = REPO_ROOT, *, with_boto3: bool = True) -> Path:
    """Fills ``folder`` with the source of every function."""
    installed = Path(sysconfig.get_paths()["purelib"])
    for base, names in ((root, OWN), (installed, CATTRS), (installed, BOTO3 if with_boto3 else ())):
        for name in names:
            _copy(base / name, folder / name, base)
    return folder


def _copy(source: Path, target: Path, base: Path) -> None:
    def ignore(folder: str, names: list[str]) -> set[str]:
        left_out = shutil.ignore_patterns(*LEFT_OUT)(folder, names)
        if Path(folder).relative_to(base).as_posix() in MODEL_FOLDERS:
            left_out |= {name for name in names if name not in SERVICES and (Path(folder) / name).is_dir()}
        return left_out

    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target, ignore=ignore)
    else:
        shutil.copyfile(source, target)
