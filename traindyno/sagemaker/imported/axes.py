"""Axes that an imported suite could vary: neighbouring instance types, the batch size, strategies of built-in tasks."""

from collections.abc import Mapping
from typing import Any

from traindyno.core.instances.instance_types import InstanceType, find_instance_type, instance_types
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
            if BATCH_SIZE in name.lower().replace("-", "_") and _is_count(value):
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
    family = sorted((each for each in instance_types().values() if _is_of(each, own.family)), key=_size)
    place = [each.name for each in family].index(name)
    near = [each.name for each in (*family[max(place - 1, 0) : place], *family[place + 1 : place + 2])]
    alike = sorted(each.name for each in instance_types().values() if _is_alike(each, own))
    return [*near, *alike][:MOST_TYPES]


def _is_of(each: InstanceType, family: str) -> bool:
    return not each.is_local and each.family == family


def _size(each: InstanceType) -> tuple[int, int, float]:
    return (each.devices_per_instance or 0, each.vcpus or 0, each.memory_gib or 0.0)


def _is_alike(each: InstanceType, own: InstanceType) -> bool:
    if each.is_local or each.family == own.family or each.accelerator_kind is not own.accelerator_kind:
        return False
    is_kin = each.family[0] == own.family[0] and each.name.rpartition(".")[2] == own.name.rpartition(".")[2]
    return is_kin and each.devices_per_instance == own.devices_per_instance


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _around(value: int) -> list[int]:
    return list(dict.fromkeys((value, max(value // 2, 1), value * 2)))
