"""What the rules must know of each strategy. A new strategy gets a line here."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from traindyno.core.suite.choices import Strategy


@dataclass(frozen=True, slots=True, kw_only=True)
class StrategyTraits:
    """``holds_whole_model``: each process does, so that sharding would save memory.

    ``runs_with_xla``: it communicates only to average gradients, which XLA devices do themselves.
    ``resumes_resharded``: another number of processes can resume from its checkpoints, which name whole parameters, or
    slices that PyTorch reshards.
    """

    holds_whole_model: bool = False
    runs_with_xla: bool = False
    resumes_resharded: bool = False


TRAITS: Mapping[Strategy, StrategyTraits] = {
    Strategy.SINGLE: StrategyTraits(holds_whole_model=True, runs_with_xla=True, resumes_resharded=True),
    Strategy.DDP: StrategyTraits(holds_whole_model=True, runs_with_xla=True, resumes_resharded=True),
    Strategy.SMDDP: StrategyTraits(holds_whole_model=True, resumes_resharded=True),
    Strategy.FSDP: StrategyTraits(resumes_resharded=True),
    Strategy.ZERO1: StrategyTraits(holds_whole_model=True, resumes_resharded=True),
    Strategy.TENSOR: StrategyTraits(),
    Strategy.PIPELINE: StrategyTraits(),
}


def strategies_with(trait: Callable[[StrategyTraits], bool]) -> tuple[Strategy, ...]:
    return tuple(strategy for strategy in Strategy if trait(TRAITS[strategy]))
