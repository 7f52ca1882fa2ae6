"""Packs: runs of different size that fill the instances of a lane together. A lane's packs run one after another."""

from collections.abc import Iterable, Sequence
from itertools import groupby

from traindyno.core.suite.suite import Run

# The state of an execution contains pointers to a round's packs; Step Functions limits it to 256 KiB.
MOST_PACKS = 500

Pack = tuple[Run, ...]


def pack_runs(runs: Sequence[Run], instances: int) -> tuple[Pack, ...]:
    """Each pack uses at most ``instances``; a run of more than that is a separate pack.

    Trials stay in their order: only the last pack of a trial is filled up with runs of the next one. Within a trial the
    largest runs are placed first, equal ones in their random order, and the packs follow in the random order of their
    first runs, so that no cell always runs beside the same cells.
    """
    packed: list[Pack] = []
    rest: Pack = ()
    for _, of_trial in groupby(runs, key=lambda run: run.trial):
        packs = _fill(_largest_first(of_trial), instances, rest)
        if rest:
            packed.append(packs.pop(0))
        # The emptiest pack is last, so that the next trial can use its free instances.
        rest = min(packs, key=_size, default=())
        packed += sorted((pack for pack in packs if pack is not rest), key=_place)
    return (*packed, *([rest] if rest else []))


def pack_size(runs: Sequence[Run], *, concurrency: int, instances: int | None) -> int | None:
    """``instances`` if packs take fewer waves than ``concurrency`` runs at once; otherwise None."""
    if instances is None or len({_instances(run) for run in runs}) < 2:
        return None
    packs = wave_count(runs, concurrency=concurrency, instances=instances)
    is_better = packs < wave_count(runs, concurrency=concurrency, instances=None)
    return instances if is_better and packs <= MOST_PACKS else None


def wave_count(runs: Sequence[Run], *, concurrency: int, instances: int | None) -> int:
    """The number of waves on the lane's instances: its packs, or its runs ÷ ``concurrency``."""
    return -(-len(runs) // concurrency) if instances is None else len(pack_runs(runs, instances))


def _largest_first(runs: Iterable[Run]) -> list[Run]:
    return sorted(runs, key=lambda run: (-_instances(run), run.place or 0))


def _fill(runs: Iterable[Run], instances: int, begun: Pack) -> list[Pack]:
    """Puts each run into the fullest pack that has room for it."""
    packs: list[list[Run]] = [list(begun)] if begun else []
    for run in runs:
        fitting = [pack for pack in packs if _size(pack) + _instances(run) <= instances]
        if fitting:
            max(fitting, key=_size).append(run)
        else:
            packs.append([run])
    return [tuple(pack) for pack in packs]


def _place(pack: Pack) -> int:
    return min(run.place or 0 for run in pack)


def _size(pack: Sequence[Run]) -> int:
    return sum(map(_instances, pack))


def _instances(run: Run) -> int:
    return run.cell.settings.instance_count
