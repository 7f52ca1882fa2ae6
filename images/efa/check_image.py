"""Fails the build unless this image can train across instances: EFA, the OFI plugin, CUDA and
NCCL.
"""

import ctypes.util
import subprocess
import sys
from pathlib import Path

import torch

FABRIC_TOOL = Path("/opt/amazon/efa/bin/fi_info")
PLUGIN_FOLDERS = ("/opt/amazon/ofi-nccl/lib64", "/opt/amazon/ofi-nccl/lib", "/opt/aws-ofi-nccl/lib")
PLUGIN_NAMES = ("libnccl-net-ofi.so", "libnccl-net.so")


def check_fabric() -> str:
    return subprocess.run(
        [FABRIC_TOOL, "--version"], check=True, capture_output=True, text=True
    ).stdout.splitlines()[0]


def check_plugin() -> str:
    found = [
        path
        for folder in PLUGIN_FOLDERS
        for name in PLUGIN_NAMES
        if (path := Path(folder, name)).exists()
    ]
    if not found:
        sys.exit(
            f"no OFI plugin for NCCL: expected one of {PLUGIN_NAMES} in one of {PLUGIN_FOLDERS}"
        )
    missing = [line for line in _linked_libraries(found[0]) if "not found" in line]
    if missing:
        sys.exit(f"{found[0]} can't be loaded: {missing}")
    return str(found[0])


def check_cuda() -> str:
    if torch.version.cuda is None or not torch.distributed.is_nccl_available():
        sys.exit(f"torch {torch.__version__} was built without CUDA or NCCL")
    # The OFI plugin opens the runtime by its name without a version.
    if ctypes.util.find_library("cudart") is None:
        sys.exit("libcudart.so is not on the loader's path")
    return f"torch {torch.__version__}, CUDA {torch.version.cuda}, NCCL {torch.cuda.nccl.version()}"


def _linked_libraries(library: Path) -> list[str]:
    return subprocess.run(
        ["ldd", library], check=True, capture_output=True, text=True
    ).stdout.splitlines()


sys.stdout.write("\n".join([check_fabric(), check_plugin(), check_cuda()]) + "\n")
