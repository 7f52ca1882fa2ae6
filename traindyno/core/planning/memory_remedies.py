"""Changes of a cell's settings that make it fit into the memory of its devices, each estimated like the cell itself."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from traindyno.core.planning.memory import MemoryEstimate, Remedy, fits
from traindyno.core.suite.choices import ShardScope, Strategy
from traindyno.core.suite.settings import Settings, has_effect
from traindyno.core.suite.strategies import TRAITS

Estimate = Callable[[Settings], MemoryEstimate | None]
MOST_TIMES_INSTANCES = 8


def find_remedies(settings: Settings, estimate: Estimate) -> tuple[Remedy, ...]:
    """The smallest change of each kind that fits; if none fits alone, all kinds together. ``estimate`` returns None for
    settings that can't be estimated.
    """
    search = _Search(settings, estimate)
    alone = [found for kind in (_checkpointing, _smaller_batch, _sharding) if (found := search.first(kind(settings)))]
    if alone:
        return tuple(alone)
    smallest = replace(settings, activation_checkpointing=True, batch_size_per_device=1)
    together = search.first(iter([smallest])) or search.first(_sharding(smallest))
    return (together,) if together else ()


class _Search:
    def __init__(self, settings: Settings, estimate: Estimate) -> None:
        self._settings = settings
        self._estimate = estimate

    def first(self, changed: Iterator[Settings]) -> Remedy | None:
        for each in changed:
            found = self._estimate(each)
            if found is not None and fits(found, each.instance):
                return Remedy(changes=_changes(self._settings, each), peak_bytes=found.peak_bytes)
        return None


def _checkpointing(settings: Settings) -> Iterator[Settings]:
    if not settings.activation_checkpointing:
        yield replace(settings, activation_checkpointing=True)


def _smaller_batch(settings: Settings) -> Iterator[Settings]:
    size = settings.batch_size // 2
    while size >= 1:
        yield replace(settings, batch_size_per_device=size)
        size //= 2


def _sharding(settings: Settings) -> Iterator[Settings]:
    """Shards the state over all processes first, then over more instances; a mesh keeps its other degrees."""
    sharded = settings
    if TRAITS[settings.strategy].holds_whole_model:
        sharded = replace(settings, strategy=Strategy.FSDP)
        yield sharded
    elif settings.shard_scope is ShardScope.HYBRID:
        sharded = replace(settings, shard_scope=ShardScope.FULL)
        yield sharded
    if not has_effect("shard_scope", sharded) and not has_effect("shard_degree", sharded):
        return
    times = 2
    while times <= MOST_TIMES_INSTANCES:
        shards = None if sharded.shard_degree is None else sharded.shard_degree * times
        yield replace(sharded, instance_count=settings.instance_count * times, shard_degree=shards)
        times *= 2


def _changes(before: Settings, after: Settings) -> dict[str, Any]:
    names = (
        *("strategy", "shard_scope", "shard_degree"),
        *("instance_count", "batch_size_per_device", "activation_checkpointing"),
    )
    return {name: getattr(after, name) for name in names if getattr(after, name) != getattr(before, name)}
