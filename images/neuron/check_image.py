"""Fails the build unless this image can train on Trainium: torch-neuronx, XLA, the compiler, EFA, the packages."""

import importlib
import importlib.metadata
import shutil
import sys
from pathlib import Path

from packaging.requirements import Requirement

FABRIC_TOOL = Path("/opt/amazon/efa/bin/fi_info")
MODULES = (
    "sagemaker_pytorch_container.training",
    "torch_xla",
    "transformers",
    "datasets",
    "cattrs",
    "s3torchconnector",
)
DISTRIBUTIONS = ("torch", "torch-neuronx", "torch-xla", "neuronx-cc")
USED = ("transformers", "datasets", "cattrs", "s3torchconnector", "sagemaker_pytorch_training")


def unmet_requirements() -> list[str]:
    """What `pip check` would report of the packages that a job imports, and of what those require."""
    unmet, seen, left = [], set(), [*USED]
    while left:
        name = left.pop()
        if name in seen:
            continue
        seen.add(name)
        for text in importlib.metadata.requires(name) or ():
            requirement = Requirement(text)
            if requirement.marker and not requirement.marker.evaluate({"extra": ""}):
                continue
            try:
                found = importlib.metadata.version(requirement.name)
            except importlib.metadata.PackageNotFoundError:
                unmet.append(f"{name} requires {requirement}, which is not installed")
                continue
            if not requirement.specifier.contains(found, prereleases=True):
                unmet.append(f"{name} requires {requirement}, found {found}")
            left.append(requirement.name)
    return unmet


for module in MODULES:
    importlib.import_module(module)
if shutil.which("neuronx-cc") is None:
    sys.exit("the Neuron compiler neuronx-cc is not on the path")
if not FABRIC_TOOL.exists():
    sys.exit(f"EFA is not installed: expected {FABRIC_TOOL}")
if unmet := unmet_requirements():
    sys.exit("\n".join(unmet))
sys.stdout.write("".join(f"{name} {importlib.metadata.version(name)}\n" for name in DISTRIBUTIONS))
