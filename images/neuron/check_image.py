"""Fails the build unless this image can train on Trainium: torch-neuronx, XLA, the compiler,
EFA.
"""

import importlib
import importlib.metadata
import shutil
import sys
from pathlib import Path

FABRIC_TOOL = Path("/opt/amazon/efa/bin/fi_info")
DISTRIBUTIONS = ("torch", "torch-neuronx", "torch-xla", "neuronx-cc")


importlib.import_module("torch_xla")
if shutil.which("neuronx-cc") is None:
    sys.exit("the Neuron compiler neuronx-cc is not on the path")
if not FABRIC_TOOL.exists():
    sys.exit(f"EFA is not installed: expected {FABRIC_TOOL}")
sys.stdout.write("".join(f"{name} {importlib.metadata.version(name)}\n" for name in DISTRIBUTIONS))
