"""Processors and accelerators of this machine, as PyTorch and the kernel see them."""

import os
import platform
from pathlib import Path
from typing import Any

import torch

CPU_INFO = Path("/proc/cpuinfo")
NVIDIA_DRIVER = Path("/proc/driver/nvidia/version")
DEVICES = Path("/dev")


def processor_facts() -> dict[str, Any]:
    return {
        "processor": _processor_name(),
        "usable_cpu_count": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "threads": torch.get_num_threads(),
        "host_memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
    }


def accelerator_facts() -> dict[str, Any]:
    """Numbers of devices that the kernel shows, and that PyTorch can use."""
    return {
        "nvidia_devices": len([path for path in DEVICES.glob("nvidia[0-9]*") if path.name[6:].isdigit()]),
        "neuron_devices": len(list(DEVICES.glob("neuron[0-9]*"))),
        "nvidia_driver": _driver_version(),
        "cuda_devices": [_cuda_device(index) for index in range(torch.cuda.device_count())],
        "cuda": torch.version.cuda,
        "cudnn": _cudnn_version(),
        "nccl": _nccl_version(),
    }


def _cudnn_version() -> int | None:
    if not torch.cuda.is_available():
        return None
    version: int | None = torch.backends.cudnn.version()  # type: ignore[no-untyped-call]
    return version


def _nccl_version() -> str | None:
    if not torch.cuda.is_available():
        return None
    return ".".join(map(str, torch.cuda.nccl.version()))  # type: ignore[no-untyped-call]


def _cuda_device(index: int) -> dict[str, Any]:
    found = torch.cuda.get_device_properties(index)
    return {
        "name": found.name,
        "memory_bytes": found.total_memory,
        "compute_capability": f"{found.major}.{found.minor}",
    }


def _driver_version() -> str | None:
    if not NVIDIA_DRIVER.exists():
        return None
    return NVIDIA_DRIVER.read_text().splitlines()[0].split("  ")[1]


def _processor_name() -> str:
    if CPU_INFO.exists():
        for line in CPU_INFO.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()
