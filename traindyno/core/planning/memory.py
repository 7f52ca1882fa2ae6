"""Whether a cell's job fits into the memory of its devices: the estimated peak and the device's
memory.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from traindyno.core.costs.quantity_text import bytes_text
from traindyno.core.instances.instance_types import find_instance_type, has_gpu
from traindyno.core.planning.peak_lines import MemoryEstimate, PeakLines, batch_unit
from traindyno.core.run.settings import Settings
from traindyno.core.suite.cells import Cell

BYTES_PER_GB = 10**9
# Memory of a GPU that no estimate contains. On an H100, with models of 12 to 124 million
# parameters: about 0.5 GiB for the CUDA context, up to 0.1 more allocated than estimated, up to 0.8
# reserved by the allocator and not allocated.
OUTSIDE_BYTES = 3 * 2**30 // 2


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryFinding:
    """The finding for one configuration.

    ``estimate`` is None if ``why_unknown`` is set. ``largest_batch``: per device, that fits; 0 if
    none does, None if it is unknown.
    """

    estimate: MemoryEstimate | None = None
    why_unknown: str | None = None
    largest_batch: int | None = None

    def is_too_large(self, instance_type: str) -> bool:
        return self.estimate is not None and not fits(self.estimate, instance_type)

    @property
    def help_text(self) -> str:
        if self.largest_batch:
            return f"batch_size_per_device {self.largest_batch}"
        return "activation_checkpointing, strategy fsdp or more instances; no batch fits without"


@dataclass(frozen=True, slots=True, kw_only=True)
class CellMemory:
    """Estimated memory of a cell.

    ``device_bytes`` is None where the device's memory is not known.
    """

    cell_id: str
    device_bytes: int | None
    finding: MemoryFinding


def fits(estimate: MemoryEstimate, instance_type: str) -> bool:
    """Whether a device of the type has the memory; also True if the device's memory is not
    known.
    """
    usable_bytes = usable_memory_bytes(instance_type)
    return usable_bytes is None or estimate.peak_bytes <= usable_bytes


def device_memory_bytes(instance_type: str) -> int | None:
    """The memory of one device by its data sheet; None without an accelerator, or if no figure was
    checked.
    """
    known_type = find_instance_type(instance_type)
    return (
        None
        if known_type is None or known_type.device.memory_gb is None
        else int(known_type.device.memory_gb * BYTES_PER_GB)
    )


def outside_bytes(instance_type: str) -> int:
    return OUTSIDE_BYTES if has_gpu(instance_type) else 0


def usable_memory_bytes(instance_type: str) -> int | None:
    """Memory of one device that tensors can use."""
    device = device_memory_bytes(instance_type)
    return None if device is None else device - outside_bytes(instance_type)


def finding_of(
    settings: Settings, *, lines: PeakLines | None, whole: MemoryEstimate | None
) -> MemoryFinding:
    """Finding about the memory that settings need.

    ``whole`` is an estimate of this batch alone, which no line gives.
    """
    estimate = whole or (None if lines is None else lines.at(settings.batch_size))
    usable_bytes = usable_memory_bytes(settings.instance)
    unit = batch_unit(settings)
    if lines is None or usable_bytes is None:
        return MemoryFinding(estimate=estimate)
    most = lines.largest_batch(usable_bytes)
    return MemoryFinding(estimate=estimate, largest_batch=most - most % unit)


def memory_of_cells(
    cells: Iterable[Cell], find: Callable[[Settings], MemoryFinding]
) -> tuple[CellMemory, ...]:
    return tuple(
        CellMemory(
            cell_id=cell.cell_id,
            device_bytes=device_memory_bytes(cell.settings.instance),
            finding=find(cell.settings),
        )
        for cell in cells
    )


def too_large(cells: Iterable[Cell], memory: Iterable[CellMemory]) -> Iterator[str]:
    """The reasons to refuse the suite, and what may make each cell fit; none of a cell whose search
    finds a batch.
    """
    by_id = {cell.cell_id: cell for cell in cells}
    for cell_memory in memory:
        cell = by_id.get(cell_memory.cell_id)
        estimate = cell_memory.finding.estimate
        if (
            cell is None
            or estimate is None
            or (cell.settings.batch_search and cell_memory.finding.largest_batch)
        ):
            continue
        instance = cell.settings.instance
        if not fits(estimate, instance):
            outside = outside_bytes(instance)
            taken = f", of which {bytes_text(outside)} are not for tensors" if outside else ""
            yield (
                f"cell {cell.label} ({cell.cell_id}) needs {bytes_text(estimate.peak_bytes)} per "
                f"device by estimate, and a device of {instance} has "
                f"{bytes_text(device_memory_bytes(instance))}{taken}. What may help: "
                f"{cell_memory.finding.help_text}"
            )
