"""What a strategy can do and needs: the one table that other modules ask. A new strategy gets a line here."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from traindyno.core.suite.choices import Strategy


@dataclass(frozen=True, slots=True, kw_only=True)
class StrategyTraits:
    """``one_process``: a job is one process, which uses one device.

    ``holds_whole_model``: each process does, so that sharding would save memory.
    ``takes_the_rest``: the degrees of which the first that is left out takes the processes that the others leave.
    ``stages_are_neighbours``: a pipeline stays within an instance if it fits; else its stages are far apart, and the
    groups that communicate more are neighbours.
    ``runs_with_xla``: it communicates only to average gradients, which XLA devices do themselves.
    ``is_composition``: it divides processes by degrees on one mesh. A run of another such strategy, and of other
    degrees, can resume from its checkpoints.
    ``sagemaker_collectives``: it needs SageMaker's data parallel library, which has its own images and launcher.
    ``stand_in``: a strategy that needs the same memory and runs everywhere; None if this one does.
    """

    one_process: bool = False
    holds_whole_model: bool = False
    takes_the_rest: tuple[str, ...] = ("replicate",)
    stages_are_neighbours: bool = False
    runs_with_xla: bool = False
    is_composition: bool = False
    sagemaker_collectives: bool = False
    stand_in: Strategy | None = None


TRAITS: Mapping[Strategy, StrategyTraits] = {
    Strategy.SINGLE: StrategyTraits(one_process=True, holds_whole_model=True, runs_with_xla=True),
    Strategy.DDP: StrategyTraits(holds_whole_model=True, runs_with_xla=True),
    Strategy.SMDDP: StrategyTraits(holds_whole_model=True, sagemaker_collectives=True, stand_in=Strategy.DDP),
    Strategy.FSDP: StrategyTraits(is_composition=True, takes_the_rest=("shard",)),
    Strategy.ZERO1: StrategyTraits(holds_whole_model=True),
    Strategy.TENSOR: StrategyTraits(is_composition=True, takes_the_rest=("tensor", "replicate")),
    Strategy.PIPELINE: StrategyTraits(
        is_composition=True, takes_the_rest=("pipeline", "replicate"), stages_are_neighbours=True
    ),
    Strategy.MESH: StrategyTraits(is_composition=True, takes_the_rest=("shard", "replicate", "pipeline", "tensor")),
}


def strategies_with(trait: Callable[[StrategyTraits], bool]) -> tuple[Strategy, ...]:
    return tuple(strategy for strategy in Strategy if trait(TRAITS[strategy]))
