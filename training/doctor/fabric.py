"""The network between instances: Elastic Fabric Adapter devices and the libraries that use them."""

import os
import subprocess
from pathlib import Path
from typing import Any

DEVICES = Path("/dev/infiniband")
FABRIC_TOOL = Path("/opt/amazon/efa/bin/fi_info")
PLUGIN_FOLDERS = ("/opt/amazon/ofi-nccl/lib64", "/opt/amazon/ofi-nccl/lib", "/opt/aws-ofi-nccl/lib")
PLUGIN_NAMES = ("libnccl-net-ofi.so", "libnccl-net.so")
PASSED_ON = ("FI_", "NCCL_", "GLOO_", "TORCH_NCCL_")


def fabric_facts() -> dict[str, Any]:
    return {
        "efa_devices": len(list(DEVICES.glob("uverbs*"))),
        "libfabric": _libfabric_version(),
        "ofi_plugin": _plugin(),
        "variables": {name: value for name, value in sorted(os.environ.items()) if name.startswith(PASSED_ON)},
    }


def _libfabric_version() -> str | None:
    if not FABRIC_TOOL.exists():
        return None
    answer = subprocess.run([FABRIC_TOOL, "--version"], capture_output=True, text=True, check=False, timeout=30)
    lines = answer.stdout.splitlines()
    return lines[0] if lines else None


def _plugin() -> str | None:
    paths = [Path(folder, name) for folder in PLUGIN_FOLDERS for name in PLUGIN_NAMES]
    return next((str(path) for path in paths if path.exists()), None)
