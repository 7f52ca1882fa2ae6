"""How many loader workers would use all vCPUs of an instance, for suites that vary their number."""

from collections.abc import Iterator, Sequence
from typing import Any

from traindyno.core.instances.instance_types import find_instance_type
from traindyno.core.suite.processes import world_size
from traindyno.core.suite.suite import Cell

# A script's argument: PyTorch's num_workers, transformers' dataloader_num_workers.
ARGUMENT = "num_workers"


def loader_notes(cells: Sequence[Cell]) -> Iterator[str]:
    """One sentence for each instance type and number of processes; none where the vCPUs are unknown."""
    if len({_workers(cell) for cell in cells}) < 2:
        return
    yield from dict.fromkeys(note for cell in cells if (note := _note(cell)))


def _workers(cell: Cell) -> Any:
    given = [value for name, value in cell.hyperparameters.items() if name.endswith(ARGUMENT)]
    return given[0] if given else cell.settings.loader_workers


def _note(cell: Cell) -> str | None:
    found, processes = find_instance_type(cell.settings.instance), world_size(cell.settings)
    if found is None or found.vcpus is None or processes is None:
        return None
    per_instance = processes // cell.settings.instance_count
    share = found.vcpus // per_instance
    workers = "1 loader worker" if share == 1 else f"{share} loader workers"
    each = "in its process" if per_instance == 1 else f"in each of its {per_instance} processes"
    return f"{found.name} has {found.vcpus} vCPUs: {workers} {each} would use all of them"
