"""Fails the build unless processes of this image can communicate on CPUs: torch with Gloo."""

import sys

import torch

if not torch.distributed.is_gloo_available():
    sys.exit(
        f"torch {torch.__version__} was built without Gloo, which processes on CPUs communicate "
        "with"
    )
sys.stdout.write(f"torch {torch.__version__}\n")
