"""Settings that are options of one strategy: with any other they have no effect, and mean no difference."""

from collections.abc import Mapping

from traindyno.core.suite.suite import Settings, Strategy

STRATEGY_OF_OPTION: Mapping[str, Strategy] = {
    "shard_scope": Strategy.FSDP,
    "tensor_degree": Strategy.TENSOR,
    "pipeline_degree": Strategy.PIPELINE,
    "pipeline_schedule": Strategy.PIPELINE,
    "micro_batches": Strategy.PIPELINE,
}


def has_effect(name: str, settings: Settings) -> bool:
    return STRATEGY_OF_OPTION.get(name, settings.strategy) is settings.strategy
