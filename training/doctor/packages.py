"""Versions of the installed packages that a run's speed depends on."""

from importlib.metadata import PackageNotFoundError, version

import torch

NAMES = (
    "torch",
    "transformers",
    "tokenizers",
    "datasets",
    "numpy",
    "pyarrow",
    "triton",
    "s3torchconnector",
    "torch-xla",
    "torch-neuronx",
    "neuronx-cc",
    "sagemaker-training",
    "smdistributed-dataparallel",
)


def package_versions() -> dict[str, str]:
    """Packages that are not installed are left out. PyTorch's own version names its build, which pip's may not."""
    found = {name: found for name in NAMES if (found := _version(name)) is not None}
    return {**found, "torch": str(torch.__version__)}


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
