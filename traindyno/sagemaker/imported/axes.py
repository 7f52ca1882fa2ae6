"""Axes that an imported suite could vary: neighbouring instance types, the batch size, strategies of built-in tasks."""

from collections.abc import Mapping
from typing import Any

from traindyno.core.instances.instance_types import find_instance_type, instance_types
from traindyno.core.suite.choices import Strategy, Task
from traindyno.core.suite.settings import HYPERPARAMETER_PREFIX

MOST_TYPES = 5
BATCH_SIZE = "batch_size"
OWN_BATCH_SIZE = "batch_size_per_device"


def suggest_axes(document: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Setting or ``hyperparameters.<name>`` → values, the job's own first. They are suggestions: no rule is checked."""
    training, workload = document["training"], document["workload"]
    axes: dict[str, list[Any]] = {}
    types = neighbours(training["instance"])
    if types:
        axes["instance"] = [training["instance"], *types]
    if workload["task"] == Task.SCRIPT:
        for name, value in workload.get("hyperparameters", {}).items():
            is_count = isinstance(value, int) and not isinstance(value, bool) and value > 0
            if is_count and BATCH_SIZE in name.lower().replace("-", "_"):
                axes[f"{HYPERPARAMETER_PREFIX}{name}"] = _around(value)
        return axes
    axes[OWN_BATCH_SIZE] = _around(training.get(OWN_BATCH_SIZE, 1))
    strategy, instance = training.get("strategy", Strategy.DDP.value), find_instance_type(training["instance"])
    if instance is not None and (instance.devices_per_instance or 1) * training.get("instance_count", 1) > 1:
        axes["strategy"] = list(dict.fromkeys((strategy, Strategy.DDP.value, Strategy.FSDP.value)))
    return axes


def neighbours(name: str) -> list[str]:
    """The next smaller and the next larger type of the family, then types of like families with the same size."""
    own = find_instance_type(name)
    if own is None or own.is_local:
        return []
    types = [each for each in instance_types().values() if not each.is_local]
    family = sorted(
        (each for each in types if each.family == own.family),
        key=lambda each: (each.devices_per_instance or 0, each.vcpus or 0, each.memory_gib or 0.0),
    )
    place = [each.name for each in family].index(name)
    near = [each.name for each in (*family[max(place - 1, 0) : place], *family[place + 1 : place + 2])]
    others = [each for each in types if each.family != own.family and each.accelerator_kind is own.accelerator_kind]
    size = own.name.rpartition(".")[2]
    kin = [each for each in others if each.family[0] == own.family[0] and each.name.rpartition(".")[2] == size]
    alike = sorted(each.name for each in kin if each.devices_per_instance == own.devices_per_instance)
    return [*near, *alike][:MOST_TYPES]


def _around(value: int) -> list[int]:
    return list(dict.fromkeys((value, max(value // 2, 1), value * 2)))
