"""The environment line of a step log: what the run had of processors, accelerators, network and packages."""

import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

from traindyno.callbacks import environment

CPU_INFO = Path("/proc/cpuinfo")
NVIDIA_DRIVER = Path("/proc/driver/nvidia/version")
DEVICES = Path("/dev")
FABRIC_DEVICES = Path("/dev/infiniband")
FABRIC_TOOL = Path("/opt/amazon/efa/bin/fi_info")
PLUGIN_FOLDERS = ("/opt/amazon/ofi-nccl/lib64", "/opt/amazon/ofi-nccl/lib", "/opt/aws-ofi-nccl/lib")
PLUGIN_NAMES = ("libnccl-net-ofi.so", "libnccl-net.so")
PASSED_ON = ("FI_", "NCCL_", "GLOO_", "TORCH_NCCL_")
PACKAGES = (
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


def environment_facts() -> dict[str, Any]:
    return {
        **environment.environment_facts(),
        "processor": _processor_name(),
        "usable_cpu_count": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "threads": torch.get_num_threads(),
        "host_memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "versions": package_versions(),
        "accelerators": accelerator_facts(),
        "fabric": fabric_facts(),
    }


def accelerator_facts() -> dict[str, Any]:
    """Numbers of devices that the kernel shows, and that PyTorch can use."""
    has_cuda = torch.cuda.is_available()
    return {
        "nvidia_devices": len([path for path in DEVICES.glob("nvidia[0-9]*") if path.name[6:].isdigit()]),
        "neuron_devices": len(list(DEVICES.glob("neuron[0-9]*"))),
        "nvidia_driver": NVIDIA_DRIVER.read_text().splitlines()[0].split("  ")[1] if NVIDIA_DRIVER.exists() else None,
        "cuda_devices": [
            {
                "name": found.name,
                "memory_bytes": found.total_memory,
                "compute_capability": f"{found.major}.{found.minor}",
            }
            for found in map(torch.cuda.get_device_properties, range(torch.cuda.device_count()))
        ],
        "cuda": torch.version.cuda,
        "cudnn": torch.backends.cudnn.version() if has_cuda else None,  # type: ignore[no-untyped-call]
        "nccl": ".".join(map(str, torch.cuda.nccl.version())) if has_cuda else None,  # type: ignore[no-untyped-call]
    }


def _processor_name() -> str:
    if CPU_INFO.exists():
        for line in CPU_INFO.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def fabric_facts() -> dict[str, Any]:
    plugins = (Path(folder, name) for folder in PLUGIN_FOLDERS for name in PLUGIN_NAMES)
    return {
        "efa_devices": len(list(FABRIC_DEVICES.glob("uverbs*"))),
        "libfabric": _libfabric_version(),
        "ofi_plugin": next((str(path) for path in plugins if path.exists()), None),
        "variables": {name: value for name, value in sorted(os.environ.items()) if name.startswith(PASSED_ON)},
    }


def _libfabric_version() -> str | None:
    if not FABRIC_TOOL.exists():
        return None
    answer = subprocess.run([FABRIC_TOOL, "--version"], capture_output=True, text=True, check=False, timeout=30)
    lines = answer.stdout.splitlines()
    return lines[0] if lines else None


def package_versions() -> dict[str, str]:
    """Packages that are not installed are left out. PyTorch's own version names its build, which pip's may not."""
    found = {name: found for name in PACKAGES if (found := _version(name)) is not None}
    return {**found, "torch": str(torch.__version__)}


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
