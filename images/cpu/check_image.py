"""Fails the build unless this image can train on a CPU: torch with Gloo, the toolkit, the packages."""

import importlib
import sys

import torch

MODULES = ("sagemaker_pytorch_container.training", "transformers", "datasets", "cattrs", "s3torchconnector")


for module in MODULES:
    importlib.import_module(module)
if not torch.distributed.is_gloo_available():
    sys.exit(f"torch {torch.__version__} was built without Gloo, which processes on CPUs communicate with")
sys.stdout.write(f"torch {torch.__version__}\n")
