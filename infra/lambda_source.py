"""The source asset of every function: a .zip of our modules, cattrs and boto3, which takes neither
Docker nor a network.
"""

import io
import sysconfig
import zipfile
from collections.abc import Iterator
from pathlib import Path

from traindyno.import_closure import imported_files

REPO_ROOT = Path(__file__).resolve().parent.parent
# cattrs, boto3 and what they import are pure Python: a copy of what is installed here runs on any
# Lambda. The runtime's own boto3 may be too old for the requests that functions send.
CATTRS = ("cattrs", "attrs", "attr", "typing_extensions.py")
BOTO3 = ("boto3", "botocore", "s3transfer", "jmespath", "dateutil", "six.py", "urllib3")
# Service models are most of botocore's size, so the asset has only the models of the services that
# functions call.
SERVICES = frozenset(
    {
        "cloudformation",
        "codebuild",
        "dynamodb",
        "events",
        "logs",
        "pricing",
        "s3",
        "sagemaker",
        "service-quotas",
        "sns",
        "ssm",
        "stepfunctions",
    }
)
MODEL_FOLDERS = frozenset({"botocore/data", "boto3/data"})
# The time zones of dateutil are a copy of the machine's; botocore asks for UTC and local time.
LEFT_OUT = frozenset({"__pycache__", "py.typed", "preconf", "examples", "dateutil-zoneinfo.tar.gz"})
LEFT_OUT_SUFFIXES = (".pyc", ".pyi")
READABLE = 0o644 << 16  # a .zip keeps the mode in the upper half of its attributes


def pack_lambda_source(root: Path = REPO_ROOT, *, with_boto3: bool = True) -> bytes:
    """Returns the content of the .zip, which is the same for the same files.

    A folder instead of a .zip would be copied and read twice, file by file.
    """
    handlers = [f"lambdas.{path.parent.name}.handler" for path in root.glob("lambdas/*/handler.py")]
    files = imported_files(handlers, root)
    installed = Path(sysconfig.get_paths()["purelib"])
    for name in (*CATTRS, *BOTO3) if with_boto3 else CATTRS:
        files |= {
            path.relative_to(installed).as_posix(): path
            for path in _files(installed / name, installed)
        }
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, path in sorted(files.items()):
            member = zipfile.ZipInfo(name)
            member.external_attr = READABLE
            archive.writestr(member, path.read_bytes(), zipfile.ZIP_DEFLATED)
    return packed.getvalue()


def _files(path: Path, base: Path) -> Iterator[Path]:
    """The file, or the files in the folder, without what no function reads."""
    if not path.is_dir():
        yield path
        return
    holds_models = path.relative_to(base).as_posix() in MODEL_FOLDERS
    for inner in path.iterdir():
        if inner.name in LEFT_OUT or inner.name.endswith(LEFT_OUT_SUFFIXES):
            continue
        if not holds_models or inner.name in SERVICES or not inner.is_dir():
            yield from _files(inner, base)
