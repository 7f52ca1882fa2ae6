"""Fails the build unless this image can train on Trainium: torch-neuronx, XLA, the compiler, EFA, the packages."""

import importlib
import importlib.metadata
import shutil
import sys
from pathlib import Path

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


for module in MODULES:
    importlib.import_module(module)
if shutil.which("neuronx-cc") is None:
    sys.exit("the Neuron compiler neuronx-cc is not on the path")
if not FABRIC_TOOL.exists():
    sys.exit(f"EFA is not installed: expected {FABRIC_TOOL}")
sys.stdout.write("".join(f"{name} {importlib.metadata.version(name)}\n" for name in DISTRIBUTIONS))
