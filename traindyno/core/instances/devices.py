"""What one process drives: a device's memory and its peaks by its data sheet, without sparsity."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib.resources import files


class AcceleratorKind(StrEnum):
    NONE = "none"
    GPU = "gpu"
    NEURON = "neuron"


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """A device of an instance type. None for what isn't known.

    ``half_flops`` are of bf16, or of fp16 for a device without bf16. ``link_bytes_per_second`` is
    the rate to the others of its instance, in one direction.
    """

    kind: AcceleratorKind
    memory_gb: float | None = None
    half_flops: float | None = None
    has_bf16: bool = True
    single_flops: float | None = None
    memory_bytes_per_second: float | None = None
    link_bytes_per_second: float | None = None


@cache
def devices() -> Mapping[str, Device]:
    table = json.loads(
        files("traindyno.core.instances.data").joinpath("devices.json").read_text(encoding="utf-8")
    )
    return {
        name: Device(**{**row, "kind": AcceleratorKind(row["kind"])})
        for name, row in table["devices"].items()
    }
