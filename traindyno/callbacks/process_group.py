"""Which group of processes this one trains in: processes without a group each train alone, on all of the data."""

import sys
from typing import Any, Callable, Dict, Optional, Tuple

PROCESS_GROUP = "process_group"  # a fact of the environment
INDEPENDENT = "independent"


def _size_of_torch(distributed: Any) -> Optional[int]:
    return distributed.get_world_size() if distributed.is_available() and distributed.is_initialized() else None


def _size_of_mpi(mpi: Any) -> Optional[int]:
    return mpi.COMM_WORLD.Get_size() if mpi.Is_initialized() else None


# Modules that form a group, and how the group's size is read; none is imported here.
SIZES = {
    "torch.distributed": _size_of_torch,
    "torch_xla.runtime": lambda runtime: runtime.world_size(),
    "smdistributed.modelparallel.torch": lambda smp: smp.size(),
    "smdistributed.dataparallel.torch.distributed": lambda smddp: smddp.get_world_size(),
    "horovod.torch": lambda horovod: horovod.size(),
    "mpi4py.MPI": _size_of_mpi,
}  # type: Dict[str, Callable[[Any], Optional[int]]]
PLAIN = "torch.distributed.init_process_group() before the first step"
LIGHTNING = (
    'Lightning\'s Trainer(devices=int(os.environ["LOCAL_WORLD_SIZE"]), num_nodes=int(os.environ["GROUP_WORLD_SIZE"]))'
)
# What makes a framework find the other processes, by the module that its script imports. Trainer imports Accelerate.
REMEDIES = {
    "traindyno.callbacks.lightning": LIGHTNING,
    "traindyno.callbacks.hf_trainer": "TrainingArguments(use_cpu=True) on a CPU",
    "accelerate": "Accelerator(cpu=True) on a CPU",
}


def find_process_group() -> Optional[Tuple[str, int]]:
    """Returns the module that formed this process's group of several, and the group's size; None without a group."""
    if _accelerate_is_alone():
        return None
    for name, size_of in SIZES.items():
        module = sys.modules.get(name)
        size = None if module is None else _size(module, size_of)
        if size is not None and size > 1:
            return name, size
    return None


def require_process_group(launched: int) -> Dict[str, Any]:
    """Returns the group of one of ``launched`` processes as a fact. Raises RuntimeError if it has none."""
    group = find_process_group()
    if group is None:
        raise RuntimeError(
            "{} processes were started, but this one has no process group: each trains alone on all of the data, and "
            "their samples would be counted as those of one run; expected {}; or step_log.independent() before the "
            "first step, if each is meant to train alone".format(launched, _remedy())
        )
    return {PROCESS_GROUP: group[0], "process_group_size": group[1]}


def _accelerate_is_alone() -> bool:
    """Accelerate, which Trainer uses, can form torch's group and train without it: on a CPU that it was not told of."""
    state = getattr(sys.modules.get("accelerate.state"), "AcceleratorState", None)
    # The object would be made by asking for it: what its instances share is there once the script has made one.
    shared = getattr(state, "_shared_state", {})
    return bool(shared) and shared.get("num_processes") == 1


def _remedy() -> str:
    return next((remedy for name, remedy in REMEDIES.items() if name in sys.modules), PLAIN)


def _size(module: Any, size_of: Callable[[Any], Optional[int]]) -> Optional[int]:
    """None if the library is imported but not started, which each tells by an exception of its own."""
    try:
        return size_of(module)
    except Exception:  # noqa: BLE001
        return None
