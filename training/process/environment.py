"""The environment line of a step log, with the hardware and the packages of the run."""

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

from traindyno.callbacks import environment

CPU_INFO = Path("/proc/cpuinfo")
NVIDIA_DRIVER = Path("/proc/driver/nvidia/version")
FABRIC_DEVICES = Path("/dev/infiniband")
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
    has_cuda = torch.cuda.is_available()
    return {
        **environment.environment_facts(),
        "processor": _processor_name(),
        "usable_cpu_count": len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count(),
        "host_memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "versions": package_versions(),
        "nvidia_driver": NVIDIA_DRIVER.read_text().splitlines()[0].split("  ")[1]
        if NVIDIA_DRIVER.exists()
        else None,
        "cuda_devices": [
            {"name": device.name, "memory_bytes": device.total_memory}
            for device in map(torch.cuda.get_device_properties, range(torch.cuda.device_count()))
        ],
        "cudnn": torch.backends.cudnn.version() if has_cuda else None,  # type: ignore[no-untyped-call]
        "nccl": ".".join(map(str, torch.cuda.nccl.version())) if has_cuda else None,  # type: ignore[no-untyped-call]
        "efa_devices": len(list(FABRIC_DEVICES.glob("uverbs*"))),
        "variables": {
            name: value for name, value in sorted(os.environ.items()) if name.startswith(PASSED_ON)
        },
    }


def _processor_name() -> str:
    if CPU_INFO.exists():
        for line in CPU_INFO.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def package_versions() -> dict[str, str]:
    """Packages that are not installed are left out.

    PyTorch's own version names its build, which pip's may not.
    """
    versions = {}
    for name in PACKAGES:
        version = _version(name)
        if version is not None:
            versions[name] = version
    return {**versions, "torch": str(torch.__version__)}


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
