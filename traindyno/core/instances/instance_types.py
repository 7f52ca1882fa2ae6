"""Instance types: devices, memory, vCPUs and network; None for unknown values."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum
from functools import cache
from importlib.resources import files
from typing import Any

LOCAL_PREFIX = "local."
# The families with NVMe disks: a "d" after the generation, and accelerated types by name.
WITH_STORAGE = re.compile(r"ml\.(\w*\d[a-z]*d[a-z]*|g4dn|g5|g6|g6e|gr6|g7|g7e|p4de|p5|p5en?|p6(e)?-\w+|trn1n?|trn2)\.")


class AcceleratorKind(StrEnum):
    NONE = "none"
    GPU = "gpu"
    NEURON = "neuron"


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceType:
    """A device is used by one training process: a GPU, a NeuronCore, or all cores of a host without either.

    ``vcpus`` is None for this machine's own types.
    """

    name: str
    accelerator_kind: AcceleratorKind
    accelerator: str | None
    devices_per_instance: int | None
    vcpus: int | None
    device_memory_gb: float | None
    peak_dense_bf16_flops_per_device: float | None
    has_rdma: bool
    has_training_quota: bool
    shares_host: bool

    @property
    def family(self) -> str:
        return self.name.split(".")[1]

    @property
    def is_local(self) -> bool:
        return self.name.startswith(LOCAL_PREFIX)

    @property
    def has_accelerator(self) -> bool:
        return self.accelerator_kind is not AcceleratorKind.NONE


def find_instance_type(name: str) -> InstanceType | None:
    return instance_types().get(name)


def has_gpu(name: str) -> bool:
    """False for an unknown type."""
    found = find_instance_type(name)
    return found is not None and found.accelerator_kind is AcceleratorKind.GPU


def close_instance_types(name: str) -> list[str]:
    """Known names that resemble a misspelt one, the closest first."""
    return get_close_matches(name, instance_types(), n=3, cutoff=0.6)


@cache
def instance_types() -> Mapping[str, InstanceType]:
    table = json.loads(
        files("traindyno.core.instances.data").joinpath("instance_types.json").read_text(encoding="utf-8")
    )
    return {name: _read_row(name, row, table["accelerators"]) for name, row in table["types"].items()}


def _read_row(name: str, row: Mapping[str, Any], accelerators: Mapping[str, Any]) -> InstanceType:
    accelerator = row.get("accelerator")
    device: Mapping[str, Any] = accelerators[accelerator] if accelerator else {"kind": "none"}
    return InstanceType(
        name=name,
        accelerator_kind=AcceleratorKind(device["kind"]),
        accelerator=accelerator,
        devices_per_instance=row["devices"] if accelerator else 1,
        vcpus=row.get("vcpus"),
        device_memory_gb=device.get("memory_gb"),
        peak_dense_bf16_flops_per_device=device.get("peak_dense_bf16_flops"),
        has_rdma=row.get("rdma", False),
        has_training_quota=row.get("has_training_quota", True),
        shares_host=row.get("shares_host", False),
    )


def has_instance_storage(instance_type: str) -> bool:
    """Whether it has instance storage, which its hardware encrypts: SageMaker accepts no volume key for it."""
    return WITH_STORAGE.match(instance_type) is not None
