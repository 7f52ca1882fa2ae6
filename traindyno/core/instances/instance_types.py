"""Instance types: devices, memory, vCPUs and network; None for unknown values."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from typing import Any

from traindyno.core.instances.devices import AcceleratorKind, Device, devices

LOCAL_PREFIX = "local."
# Families with EFA types that the toolkit (sagemaker-training 5.1.1) does not set up by itself, or
# without RDMA (p5).
EFA_FAMILIES_WITHOUT_SETUP = (
    "p5",
    "p5e",
    "p5en",
    "p6-b200",
    "p6-b300",
    "g6e",
    "g7e",
    "trn1n",
    "trn2",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceType:
    """A device is used by one training process: a GPU, a NeuronCore, or all cores of a host without
    either.

    ``vcpus`` and ``memory_gib`` are of the host, and None for this machine's own types.
    ``has_nvme``: it has instance storage, which its hardware encrypts.
    """

    name: str
    accelerator: str | None
    device: Device
    devices_per_instance: int
    vcpus: int | None
    memory_gib: float | None
    has_nvme: bool
    has_efa: bool
    has_rdma: bool
    has_training_quota: bool
    shares_host: bool

    @property
    def family(self) -> str:
        return self.name.split(".")[1]

    @property
    def accelerator_kind(self) -> AcceleratorKind:
        return self.device.kind

    @property
    def is_local(self) -> bool:
        return self.name.startswith(LOCAL_PREFIX)

    @property
    def has_accelerator(self) -> bool:
        return self.accelerator_kind is not AcceleratorKind.NONE


def find_instance_type(name: str) -> InstanceType | None:
    return instance_types().get(name)


def has_gpu(name: str) -> bool:
    """Whether the type has GPUs; False for an unknown type."""
    known_type = find_instance_type(name)
    return known_type is not None and known_type.accelerator_kind is AcceleratorKind.GPU


def has_instance_storage(name: str) -> bool:
    """Whether the type has instance storage, for which SageMaker accepts no volume key."""
    known_type = find_instance_type(name)
    return known_type is not None and known_type.has_nvme


def close_instance_types(name: str) -> list[str]:
    """Known names that resemble a misspelt one, the closest first."""
    return get_close_matches(name, instance_types(), n=3, cutoff=0.6)


@cache
def instance_types() -> Mapping[str, InstanceType]:
    table = json.loads(
        files("traindyno.core.instances.data")
        .joinpath("instance_types.json")
        .read_text(encoding="utf-8")
    )
    return {name: _read_row(name, row) for name, row in table["types"].items()}


def _read_row(name: str, row: Mapping[str, Any]) -> InstanceType:
    accelerator = row.get("accelerator")
    # what runs without an accelerator uses all cores of its host
    host = Device(kind=AcceleratorKind.NONE, has_bf16=False)
    return InstanceType(
        name=name,
        accelerator=accelerator,
        device=devices()[accelerator] if accelerator else host,
        devices_per_instance=row["devices"] if accelerator else 1,
        vcpus=row.get("vcpus"),
        memory_gib=row.get("memory_gib"),
        has_nvme=row.get("nvme", False),
        has_efa=row.get("efa", False),
        has_rdma=row.get("rdma", False),
        has_training_quota=row.get("has_training_quota", True),
        shares_host=row.get("shares_host", False),
    )


def efa_environment(instance_type: InstanceType, instance_count: int) -> dict[str, str]:
    is_set_up = instance_type.family not in EFA_FAMILIES_WITHOUT_SETUP
    if instance_count < 2 or is_set_up or not instance_type.has_efa:
        return {}
    rdma = {"FI_EFA_USE_DEVICE_RDMA": "1"} if instance_type.has_rdma else {}
    return {"FI_PROVIDER": "efa", **rdma}
