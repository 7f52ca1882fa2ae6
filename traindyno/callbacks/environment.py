"""The versions, device and host of a run. Packages are named if the process has imported them."""

import json
import os
import platform
import sys
from pathlib import Path
from typing import Any, Dict, Optional

from traindyno.callbacks.clock import cuda_in_use
from traindyno.core.step_log.line import SCATTER, SCATTER_VARIABLE, SHARED_JOB, SHARED_JOB_VARIABLE

THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")
VERSIONED_PACKAGES = (
    "torch",
    "transformers",
    "accelerate",
    "lightning",
    "pytorch_lightning",
    "datasets",
    "numpy",
)
IDENTIFIER_FILES = {
    # The instance id on an EC2 Nitro instance; usually empty elsewhere.
    "instance_id": "sys/class/dmi/id/board_asset_tag",
    "boot_id": "proc/sys/kernel/random/boot_id",
    # It is last because in a container it may be the image's, which all hosts share.
    "machine_id": "etc/machine-id",
}


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
    shared_job = os.environ.get(SHARED_JOB_VARIABLE)
    if shared_job:
        facts[SHARED_JOB] = json.loads(shared_job)
    if SCATTER_VARIABLE in os.environ:
        facts[SCATTER] = os.environ[SCATTER_VARIABLE]
    return facts


def thread_settings() -> Dict[str, Any]:
    """The thread settings of the environment, and the number of threads that torch uses for one
    operation, if it is imported.
    """
    threads = {name: os.environ[name] for name in THREAD_VARIABLES if name in os.environ}  # type: Dict[str, Any]
    torch = sys.modules.get("torch")
    if torch is not None:
        threads["torch"] = torch.get_num_threads()
    return threads


def peak_memory_bytes() -> Optional[int]:
    """The peak memory of the CUDA device that this process uses, else of the process itself."""
    cuda = cuda_in_use()
    return int(cuda.max_memory_allocated()) if cuda else peak_memory_bytes_of_host()


def allocator_retries() -> int:
    """How often the CUDA allocator of this process had no memory left, freed what it kept, and
    tried again. Only PyTorch's own allocator counts it.
    """
    cuda = cuda_in_use()
    return int(cuda.memory_stats().get("num_alloc_retries", 0)) if cuda else 0


def peak_memory_bytes_of_host() -> Optional[int]:
    """The peak memory of the process itself."""
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
    # Older versions of torch know no identifier of a device.
    uuid = getattr(torch.cuda.get_device_properties(torch.cuda.current_device()), "uuid", None)
    return {
        "device": "cuda",
        "device_name": torch.cuda.get_device_name(),
        "device_uuid": None if uuid is None else str(uuid),
        "device_count": torch.cuda.device_count(),
        "cuda": torch.version.cuda,
    }


def host_id(root: Path = Path("/")) -> Optional[str]:
    """One name for the machine: the EC2 instance, else this boot of it, else its installation; None
    if unknown.
    """
    for name, path in IDENTIFIER_FILES.items():
        text = _text(root / path)
        if text and (name != "instance_id" or text.startswith("i-")):
            return "{}:{}".format(name, text)
    return None


def _text(path: Path) -> Optional[str]:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip() or None
    except OSError:
        return None


def weights_of(module: Any) -> Dict[str, Any]:
    """How many parameters a torch module has; ``trained``: of these, where others are frozen, as
    beside an adapter.
    """
    sizes = [(parameter.numel(), parameter.requires_grad) for parameter in module.parameters()]
    parameters = sum(size for size, _ in sizes)
    trained = sum(size for size, is_trained in sizes if is_trained)
    return {"parameters": parameters, "trained": None if trained == parameters else trained}
