"""Versions, device and host of a run, from what the process has already imported."""

import os
import platform
import sys
from typing import Any, Dict, Optional

THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")
VERSIONED_PACKAGES = ("torch", "transformers", "accelerate", "lightning", "pytorch_lightning", "datasets", "numpy")


def environment_facts() -> Dict[str, Any]:
    facts = {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cpu_count": os.cpu_count(),
        "thread_settings": thread_settings(),
        "instance_type": os.environ.get("SM_CURRENT_INSTANCE_TYPE"),
        "versions": {name: _version(name) for name in VERSIONED_PACKAGES if name in sys.modules},
    }  # type: Dict[str, Any]
    facts.update(_device_facts())
    return facts


def thread_settings() -> Dict[str, Any]:
    """What the environment asks for, and how many threads torch uses for one operation, if it is imported."""
    threads = {name: os.environ[name] for name in THREAD_VARIABLES if name in os.environ}  # type: Dict[str, Any]
    torch = sys.modules.get("torch")
    if torch is not None:
        threads["torch"] = torch.get_num_threads()
    return threads


def peak_memory_bytes() -> Optional[int]:
    """Of the CUDA device this process uses, else of the process itself."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available() and torch.cuda.is_initialized():
        return int(torch.cuda.max_memory_allocated())
    if sys.platform == "win32":
        return None
    import resource  # noqa: PLC0415

    kilobytes = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * kilobytes


def _version(name: str) -> Optional[str]:
    version = getattr(sys.modules[name], "__version__", None)
    return None if version is None else str(version)


def _device_facts() -> Dict[str, Any]:
    torch = sys.modules.get("torch")
    if torch is None:
        return {}
    if not torch.cuda.is_available():
        return {"device": "cpu", "device_name": platform.processor() or platform.machine()}
    return {
        "device": "cuda",
        "device_name": torch.cuda.get_device_name(),
        "device_uuid": _device_uuid(torch),
        "device_count": torch.cuda.device_count(),
        "cuda": torch.version.cuda,
    }


def _device_uuid(torch: Any) -> Optional[str]:
    """Names the board itself; older versions of torch don't have it."""
    uuid = getattr(torch.cuda.get_device_properties(torch.cuda.current_device()), "uuid", None)
    return None if uuid is None else str(uuid)
