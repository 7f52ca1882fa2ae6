"""Facts about this machine and environment, and their problems."""

from collections.abc import Iterator
from typing import Any

from traindyno.callbacks import environment
from training.doctor.devices import accelerator_facts, processor_facts
from training.doctor.fabric import fabric_facts
from training.doctor.packages import package_versions


def environment_facts() -> dict[str, Any]:
    """The environment line of a step log."""
    return {
        **environment.environment_facts(),
        **processor_facts(),
        "versions": package_versions(),
        "accelerators": accelerator_facts(),
        "fabric": fabric_facts(),
    }


def find_problems(facts: dict[str, Any]) -> Iterator[str]:
    """Finds hardware that can't be used: a run would be slow, or not start, without a reason in its log."""
    accelerators, fabric = facts["accelerators"], facts["fabric"]
    if accelerators["nvidia_devices"] and not accelerators["cuda_devices"]:
        yield f"{accelerators['nvidia_devices']} NVIDIA devices are attached, but PyTorch finds no CUDA device"
    if accelerators["neuron_devices"] and "torch-neuronx" not in facts["versions"]:
        yield f"{accelerators['neuron_devices']} Neuron devices are attached, but torch-neuronx is not installed"
    if fabric["efa_devices"] and fabric["libfabric"] is None:
        yield f"{fabric['efa_devices']} EFA devices are attached, but libfabric is not installed"
    if fabric["efa_devices"] and accelerators["cuda_devices"] and fabric["ofi_plugin"] is None:
        yield "EFA devices are attached, but NCCL's OFI plugin is not installed: collectives would go over TCP"
