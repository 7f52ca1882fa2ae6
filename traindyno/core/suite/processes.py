"""Processes, replicas and batches of a job. The planner and the container both compute them here."""

from collections.abc import Iterable

from traindyno.core.instances.instance_types import find_instance_type
from traindyno.core.suite.choices import LearningRateScaling
from traindyno.core.suite.settings import LearningRate, Settings, degree_setting
from traindyno.core.suite.strategies import TRAITS


def world_size(settings: Settings) -> int | None:
    """Processes of the whole job, one for each device; None if the instance type's number of devices is unknown.

    A strategy of one process uses one device of an instance.
    """
    instance_type = find_instance_type(settings.instance)
    devices = instance_type.devices_per_instance if instance_type else None
    if devices is None:
        return None
    return settings.instance_count * (1 if TRAITS[settings.strategy].one_process else devices)


def processes_per_replica(settings: Settings, processes: int) -> int:
    """The number of processes that hold one replica of the model: all of the job's, if no degree is set."""
    field = degree_setting(settings.strategy)
    if field is None:
        return 1
    degree: int | None = getattr(settings, field)
    return degree or processes


def tensor_degrees(settings: Iterable[Settings]) -> tuple[int, ...]:
    """The distinct degrees of those that split heads, in order; without those of unknown device counts."""
    sharded = (each for each in settings if TRAITS[each.strategy].splits_heads)
    sizes = ((each, world_size(each)) for each in sharded)
    return tuple(sorted({processes_per_replica(each, size) for each, size in sizes if size is not None}))


def replica_count(settings: Settings, processes: int) -> int:
    """Replicas of the model that share a global batch; 0 if the degree exceeds the processes."""
    return processes // processes_per_replica(settings, processes)


def global_batch_size(settings: Settings, processes: int) -> int:
    """Samples per optimizer step over all replicas of the model."""
    return settings.batch_size * settings.gradient_accumulation_steps * replica_count(settings, processes)


def scaled_learning_rate(rate: LearningRate, batch_size: int) -> float:
    """The optimizer's learning rate at this global batch size."""
    if rate.scale_with is LearningRateScaling.NONE or rate.reference_batch_size is None:
        return rate.base
    return rate.base * batch_size / rate.reference_batch_size


def planned_batch_size(settings: Settings) -> int | None:
    """``global_batch_size`` on the cell's instances; None if their number of devices is unknown, and for a cell that
    searches its batch.
    """
    processes = None if settings.batch_search else world_size(settings)
    return None if processes is None else global_batch_size(settings, processes)


def planned_learning_rate(settings: Settings) -> float | None:
    """``scaled_learning_rate`` on the cell's instances; None where it depends on an unknown number of devices."""
    rate = settings.learning_rate
    if rate.scale_with is LearningRateScaling.NONE or rate.reference_batch_size is None:
        return rate.base
    batch_size = planned_batch_size(settings)
    return None if batch_size is None else scaled_learning_rate(rate, batch_size)
