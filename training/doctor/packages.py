"""Versions of the installed packages that a run's speed depends on."""

from importlib.metadata import PackageNotFoundError, version

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
    """Without importing them; packages that are not installed are left out."""
    return {name: found for name in NAMES if (found := _version(name)) is not None}


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
