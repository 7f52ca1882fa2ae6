"""Processes of a job, how they are divided, and batches.

The planner and the container both compute them here.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from math import isqrt, log, prod

from traindyno.core.instances.instance_types import LOCAL_PREFIX, find_instance_type
from traindyno.core.run.settings import (
    Adapter,
    LearningRate,
    Settings,
    TensorLayers,
    has_effect,
)
from traindyno.core.suite.choices import TRAITS, LearningRateScaling, PipelineSchedule, ShardScope

NAMED_NEAREST = 2
STAGES_PER_PROCESS = {PipelineSchedule.INTERLEAVED: 2}


@dataclass(frozen=True, slots=True, kw_only=True)
class Degrees:
    """How the processes are divided; the product of the degrees is their number.

    They are in the order of the mesh, the outermost dimension first: a tensor group consists of
    neighbours.
    """

    pipeline: int = 1
    replicate: int = 1
    shard: int = 1
    tensor: int = 1

    @property
    def processes(self) -> int:
        return self.replicas * self.per_replica

    @property
    def replicas(self) -> int:
        """Number of parts of the mesh that train on different data: replicas and shards."""
        return self.replicate * self.shard

    @property
    def per_replica(self) -> int:
        """The processes that share a batch."""
        return self.pipeline * self.tensor


def degrees_of(settings: Settings, processes: int) -> Degrees:
    """The degrees of a job's processes.

    The first degree that is left out takes what the others leave, in the strategy's own order;
    others are 1. If the processes can't be divided so, the product of the degrees is another
    number.
    """
    given = given_degrees(settings)
    if settings.shard_scope is ShardScope.HYBRID and has_effect("shard_scope", settings):
        given["replicate"] = settings.instance_count
    left_out = degree_that_follows(settings)
    degrees = Degrees(**given)
    return replace(degrees, **{left_out: processes // degrees.processes}) if left_out else degrees


def given_degrees(settings: Settings) -> dict[str, int]:
    """The degrees that the settings give and that have an effect, by name."""
    names = ("pipeline", "replicate", "shard", "tensor")
    degrees = {
        name: getattr(settings, f"{name}_degree")
        for name in names
        if has_effect(f"{name}_degree", settings)
    }
    return {name: degree for name, degree in degrees.items() if degree is not None}


def degree_that_follows(settings: Settings) -> str | None:
    """The degree that takes what the given ones leave; None if all are given."""
    given = given_degrees(settings)
    return next(
        (name for name in TRAITS[settings.strategy].takes_the_rest if name not in given), None
    )


def stage_ranks(settings: Settings, processes: int) -> range:
    """The ranks of the first replica's stages, each the first of its tensor group."""
    degrees = degrees_of(settings, processes)
    are_neighbours = TRAITS[settings.strategy].stages_are_neighbours
    step = degrees.tensor if are_neighbours else max(1, processes // degrees.pipeline)
    return range(0, step * degrees.pipeline, step)


def stage_count(settings: Settings, degrees: Degrees) -> int:
    """The stages into which the model is cut; 1 without a pipeline."""
    return (
        degrees.pipeline * STAGES_PER_PROCESS.get(settings.pipeline_schedule, 1)
        if degrees.pipeline > 1
        else 1
    )


def stage_counts(settings: Iterable[Settings]) -> tuple[int, ...]:
    """Numbers of stages of the cells that cut the model, each once and in order; without cells
    whose number of devices is unknown.
    """
    sizes = ((cell_settings, world_size(cell_settings)) for cell_settings in settings)
    counts = {
        stage_count(cell_settings, degrees_of(cell_settings, size))
        for cell_settings, size in sizes
        if size is not None
    }
    return tuple(sorted(counts - {1}))


def adapters_of(settings: Iterable[Settings]) -> tuple[Adapter, ...]:
    """The adapters of the cells, each once, in their order."""
    return tuple(
        dict.fromkeys(cell_settings.adapter for cell_settings in settings if cell_settings.adapter)
    )


def nearest_degrees(settings: Settings, processes: int) -> list[dict[str, int]]:
    """The possible degrees that change the given ones least, as ratios; the nearest first."""
    given = given_degrees(settings)
    is_part = degree_that_follows(settings) is not None
    possible = [
        degrees
        for degrees in _divisions(len(given), processes)
        if is_part or prod(degrees) == processes
    ]
    possible.sort(
        key=lambda degrees: sum(
            abs(log(new / old)) for new, old in zip(degrees, given.values(), strict=True)
        )
    )
    return [dict(zip(given, degrees, strict=True)) for degrees in possible[:NAMED_NEAREST]]


def nearest_degrees_text(settings: Settings, processes: int) -> str:
    return " or ".join(
        ", ".join(f"{name}_degree {degree}" for name, degree in degrees.items())
        for degrees in nearest_degrees(settings, processes)
    )


def _divisions(count: int, processes: int) -> Iterator[tuple[int, ...]]:
    """All tuples of ``count`` numbers whose product divides the processes."""
    if count == 0:
        yield ()
        return
    for first in range(1, processes + 1):
        if processes % first == 0:
            yield from ((first, *others) for others in _divisions(count - 1, processes // first))


def world_size(settings: Settings) -> int | None:
    """Processes of the whole job, one for each device; None for an unknown instance type.

    A strategy of one process uses one device of an instance.
    """
    instance_type = find_instance_type(settings.instance)
    if instance_type is None:
        return None
    is_one = TRAITS[settings.strategy].one_process
    return settings.instance_count * (1 if is_one else instance_type.devices_per_instance)


def neighbour_count(settings: Settings, processes: int) -> int:
    """The processes on one host.

    Jobs of this machine's types share it, however many instances they have.
    """
    return (
        processes
        if settings.instance.startswith(LOCAL_PREFIX)
        else processes // settings.instance_count
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorDivision:
    """A division of layers among tensor groups.

    ``layers`` is the suite's tensor_plan; None for the model's own plan.
    """

    degree: int
    layers: TensorLayers | None = None


def tensor_divisions(settings: Iterable[Settings]) -> tuple[TensorDivision, ...]:
    """Divisions of the cells, each once, with the model's own plan first; without cells whose
    number of devices is unknown.
    """
    sizes = ((cell_settings, world_size(cell_settings)) for cell_settings in settings)
    divisions = dict.fromkeys(
        TensorDivision(
            degree=degrees_of(cell_settings, size).tensor, layers=cell_settings.tensor_plan
        )
        for cell_settings, size in sizes
        if size is not None
    )
    divided = (division for division in divisions if division.degree > 1)
    return tuple(
        sorted(divided, key=lambda division: (division.layers is not None, division.degree))
    )


def replica_count(settings: Settings, processes: int) -> int:
    """Replicas of the model that share a global batch; 0 if the degree exceeds the processes."""
    return degrees_of(settings, processes).replicas


def accumulation_steps(settings: Settings, processes: int) -> int:
    """Forward and backward passes of one optimizer step: as given, or as many as the global batch
    size needs.

    At least 1, and rounded down where the batch per device does not divide the global batch;
    ``check_global_batch`` refuses such a cell.
    """
    if settings.global_batch_size is None:
        return settings.gradient_accumulation_steps
    return max(
        1,
        settings.global_batch_size
        // max(1, settings.batch_size * replica_count(settings, processes)),
    )


def global_batch_size(settings: Settings, processes: int) -> int:
    """Samples per optimizer step over all replicas of the model."""
    return (
        settings.batch_size
        * accumulation_steps(settings, processes)
        * replica_count(settings, processes)
    )


def dividing_batches(settings: Settings, processes: int) -> tuple[int, ...] | None:
    """The batches per device that keep the global batch, in order; None if the settings fix no
    global batch.

    Empty if the replicas, each with whole micro-batches, can't divide it.
    """
    replicas = replica_count(settings, processes)
    if settings.global_batch_size is None:
        return None
    if not replicas or settings.global_batch_size % replicas:
        return ()
    share = settings.global_batch_size // replicas
    lower = [batch for batch in range(1, isqrt(share) + 1) if share % batch == 0]
    step = settings.micro_batches if has_effect("micro_batches", settings) else 1
    return tuple(
        batch
        for batch in sorted({*lower, *(share // batch for batch in lower)})
        if batch % step == 0
    )


def scaled_learning_rate(rate: LearningRate, batch_size: int) -> float:
    """The optimizer's learning rate at this global batch size."""
    if rate.scale_with is LearningRateScaling.NONE or rate.reference_batch_size is None:
        return rate.base
    return rate.base * batch_size / rate.reference_batch_size


def planned_batch_size(settings: Settings) -> int | None:
    """The global batch size on the cell's instances.

    None if their number of devices is unknown, and for a cell that searches its batch and fixes no
    global batch.
    """
    if settings.batch_search:
        return settings.global_batch_size
    processes = world_size(settings)
    return None if processes is None else global_batch_size(settings, processes)


def planned_learning_rate(settings: Settings) -> float | None:
    """The scaled learning rate on the cell's instances; None where it depends on an unknown number
    of devices.
    """
    rate = settings.rate
    if rate.scale_with is LearningRateScaling.NONE or rate.reference_batch_size is None:
        return rate.base
    batch_size = planned_batch_size(settings)
    return None if batch_size is None else scaled_learning_rate(rate, batch_size)
