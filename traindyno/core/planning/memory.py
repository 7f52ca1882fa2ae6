"""Whether a cell's job fits into the memory of its devices: the estimated peak and the device's
memory.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from traindyno.core.costs.quantity_text import bytes_text
from traindyno.core.instances.instance_types import find_instance_type, has_gpu
from traindyno.core.suite.choices import Task
from traindyno.core.suite.settings import Settings, has_effect, setting_descriptions
from traindyno.core.suite.suite import Cell
from traindyno.core.suite.suite_file import suite_converter
from traindyno.core.suite.workload import Workload

BYTES_PER_GB = 10**9
# Memory of a GPU that no estimate contains. On an H100, with models of 12 to 124 million
# parameters: about 0.5 GiB for the CUDA context, up to 0.1 more allocated than estimated, up to 0.8
# reserved by the allocator and not allocated.
OUTSIDE_BYTES = 3 * 2**30 // 2
WITHOUT_EFFECT = tuple(
    name for name, description in setting_descriptions().items() if not description.changes_memory
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryEstimate:
    """Bytes at its peak of the device that needs the most.

    ``gradient_bytes``: before the optimizer's step.

    Not included: the CUDA context, cuBLAS's workspaces, NCCL's buffers and the allocator's
    fragmentation.
    """

    peak_bytes: int
    parameter_bytes: int
    gradient_bytes: int
    optimizer_bytes: int

    @property
    def activation_bytes(self) -> int:
        """Activations and temporary tensors: the peak without parameters and optimizer state."""
        return max(0, self.peak_bytes - self.parameter_bytes - self.optimizer_bytes)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryFinding:
    """The finding for one configuration.

    ``estimate`` is None if ``why_unknown`` is set. ``smaller_batch``: of one that does not fit, a
    batch per device that was estimated and fits; None if it fits, or if none does.
    """

    estimate: MemoryEstimate | None = None
    why_unknown: str | None = None
    smaller_batch: int | None = None

    def is_too_large(self, instance_type: str) -> bool:
        return self.estimate is not None and not fits(self.estimate, instance_type)

    @property
    def help_text(self) -> str:
        if self.smaller_batch is not None:
            return f"batch_size_per_device {self.smaller_batch}"
        return "activation_checkpointing, strategy fsdp or more instances; no batch fits without"


@dataclass(frozen=True, slots=True, kw_only=True)
class CellMemory:
    """``device_bytes`` is None where the device's memory is not known."""

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
    found = find_instance_type(instance_type)
    return (
        None
        if found is None or found.device.memory_gb is None
        else int(found.device.memory_gb * BYTES_PER_GB)
    )


def outside_bytes(instance_type: str) -> int:
    return OUTSIDE_BYTES if has_gpu(instance_type) else 0


def usable_memory_bytes(instance_type: str) -> int | None:
    """What one device has for tensors."""
    device = device_memory_bytes(instance_type)
    return None if device is None else device - outside_bytes(instance_type)


def why_not_estimated(workload: Workload, settings: Settings) -> str | None:
    """None where an estimate is possible."""
    if workload.task is Task.SCRIPT:
        return "a script's memory is known only while it runs"
    return None


def memory_settings(settings: Settings) -> Settings:
    """The same for all settings that need the same memory on the same number of devices."""
    plain = Settings(instance=settings.instance)
    return replace(settings, **{name: getattr(plain, name) for name in WITHOUT_EFFECT})


def distinct_settings(cells: Iterable[Cell]) -> tuple[Settings, ...]:
    """The configurations to estimate for the cells, each once."""
    return tuple(dict.fromkeys(memory_settings(cell.settings) for cell in cells))


def memory_key(workload: Workload, settings: Settings, *, code: str) -> str:
    """64 hexadecimal digits of everything that determines an estimate; ``code`` identifies the
    training code and PyTorch.
    """
    document: dict[str, Any] = suite_converter().unstructure(workload)
    content = {
        "workload": {
            name: document.get(name) for name in ("task", "model", "sequence_length", "label_count")
        },
        "settings": suite_converter().unstructure(memory_settings(settings)),
        "code": code,
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def memory_of_cells(
    cells: Iterable[Cell], findings: Mapping[Settings, MemoryFinding]
) -> tuple[CellMemory, ...]:
    """``findings`` by the distinct settings; cells without one are left out."""
    return tuple(
        CellMemory(
            cell_id=cell.cell_id,
            device_bytes=device_memory_bytes(cell.settings.instance),
            finding=found,
        )
        for cell in cells
        if (found := findings.get(memory_settings(cell.settings))) is not None
    )


def too_large(cells: Iterable[Cell], memory: Iterable[CellMemory]) -> Iterator[str]:
    """The reasons to refuse the suite, and what may make each cell fit; none of a cell whose search
    finds a batch.
    """
    by_id = {cell.cell_id: cell for cell in cells}
    for each in memory:
        cell, estimate = by_id.get(each.cell_id), each.finding.estimate
        if (
            cell is None
            or estimate is None
            or (cell.settings.batch_search and each.finding.smaller_batch)
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
                f"{each.finding.help_text}"
            )


def fitting_batch(
    estimate: MemoryEstimate | None, settings: Settings, usable_bytes: int | None
) -> int | None:
    """The largest batch per device may be larger, never smaller.

    None for a cell that does not fit or is unknown.

    All that is neither parameters nor optimizer state grows with the batch at most in proportion:
    activations do, and gradients do not grow.
    """
    if (
        estimate is None
        or usable_bytes is None
        or estimate.peak_bytes > usable_bytes
        or not estimate.activation_bytes
    ):
        return None
    room = usable_bytes - estimate.parameter_bytes - estimate.optimizer_bytes
    batch = settings.batch_size * room // estimate.activation_bytes
    return batch - batch % (settings.micro_batches if has_effect("micro_batches", settings) else 1)
