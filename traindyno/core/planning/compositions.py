"""Which degrees of strategy mesh are possible for a cell's model and devices, for people who ask before they choose."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from traindyno.core.planning.memory import MemoryFinding
from traindyno.core.suite.checks.combinations import find_impossible
from traindyno.core.suite.choices import PipelineSchedule, ShardScope, Strategy, Task
from traindyno.core.suite.processes import Degrees, degrees_of, neighbour_count, replica_count, world_size
from traindyno.core.suite.settings import Settings
from traindyno.core.suite.suite import Cell
from traindyno.core.suite.workload import Workload

# Each is estimated, and an estimate of a large model takes about a minute.
MOST_PROPOSALS = 8
# Micro-batches of a stage: with more of them a pipeline waits less, and each is smaller.
MOST_MICRO_BATCHES_PER_STAGE = 4
# Besides the heads of queries, which the rules know: what tensor groups divide by a model's own plan.
DIVIDED_COUNTS = ("num_key_value_heads", "num_local_experts", "num_experts", "n_routed_experts")


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A composition that the rules accept, and its memory. ``settings`` train the cell's global batch."""

    degrees: Degrees
    settings: Settings
    finding: MemoryFinding


def sorted_proposals(proposals: Iterable[Proposal]) -> tuple[Proposal, ...]:
    """Sort proposals that fit first, then too large ones, then failed estimates; the sort is stable."""
    return tuple(sorted(proposals, key=_fitness))


def _fitness(proposal: Proposal) -> int:
    finding = proposal.finding
    return 2 if finding.estimate is None else int(finding.is_too_large(proposal.settings.instance))


def possible_compositions(cell: Cell, workload: Workload) -> tuple[Settings, ...]:
    """The cell's settings with strategy mesh, at most MOST_PROPOSALS: those that divide a replica least are first.

    Tensor and pipeline degrees are powers of two, and a tensor group stays within an instance. Empty if the number of
    devices is unknown, if there is one, and for a script, which divides its model itself.
    """
    processes = world_size(cell.settings)
    if processes is None or processes < 2 or workload.task is Task.SCRIPT:
        return ()
    degrees = sorted(_divisions(processes, neighbour_count(cell.settings, processes)), key=_effort)
    found = (_composed(cell.settings, each, processes) for each in degrees)
    accepted = [each for each in found if each is not None and _is_possible(replace(cell, settings=each), workload)]
    return tuple(accepted[:MOST_PROPOSALS])


def proposed_degrees(settings: Settings) -> Degrees:
    """The degrees of one of ``possible_compositions``."""
    processes = world_size(settings)
    assert processes is not None
    return degrees_of(settings, processes)


def _divisions(processes: int, per_instance: int) -> Iterator[Degrees]:
    instances = processes // per_instance
    for tensor in _powers_of_two(per_instance):
        for pipeline in _powers_of_two(processes // tensor):
            data = processes // tensor // pipeline
            for replicate in {1, instances} if data % instances == 0 else {1}:
                yield Degrees(pipeline=pipeline, replicate=replicate, shard=data // replicate, tensor=tensor)


def _powers_of_two(count: int) -> Iterator[int]:
    """Powers of two that divide ``count``."""
    power = 1
    while power <= count and count % power == 0:
        yield power
        power *= 2


def _effort(degrees: Degrees) -> tuple[int, int, int]:
    """Fewer processes in a replica first, then fewer stages, then more shards."""
    return degrees.per_replica, degrees.pipeline, degrees.replicate


def _composed(settings: Settings, degrees: Degrees, processes: int) -> Settings | None:
    """The settings with these degrees and the same global batch; None if that can't be divided so."""
    samples = settings.batch_size * replica_count(settings, processes)
    batch, rest = divmod(samples, degrees.replicas)
    stages = degrees.pipeline
    most = stages * MOST_MICRO_BATCHES_PER_STAGE
    micro = [count for count in range(stages, most + 1, stages) if batch and batch % count == 0]
    if rest or (stages > 1 and not micro):
        return None
    return replace(
        settings,
        strategy=Strategy.MESH,
        shard_scope=ShardScope.FULL,
        pipeline_degree=degrees.pipeline,
        replicate_degree=degrees.replicate,
        shard_degree=degrees.shard,
        tensor_degree=degrees.tensor,
        tensor_plan=settings.tensor_plan if degrees.tensor > 1 else None,
        pipeline_schedule=PipelineSchedule.ONE_F_ONE_B if stages > 1 else PipelineSchedule.GPIPE,
        micro_batches=micro[-1] if stages > 1 else 1,
        batch_size_per_device=batch,
    )


def _is_possible(cell: Cell, workload: Workload) -> bool:
    config = (workload.model.config if workload.model else None) or {}
    counts = [config[name] for name in DIVIDED_COUNTS if isinstance(config.get(name), int)]
    if cell.settings.tensor_plan is None and any(count % (cell.settings.tensor_degree or 1) for count in counts):
        return False
    return not find_impossible(cell, workload)
