"""Waves: runs of different size that fill the instances of a lane together. A lane's waves run one after another."""

from collections.abc import Iterable, Sequence
from itertools import groupby

from traindyno.core.suite.suite import Run

# The state of an execution contains pointers to a round's waves; Step Functions limits it to 256 KiB.
MOST_WAVES = 500

Wave = tuple[Run, ...]


def fill_waves(runs: Sequence[Run], instances: int) -> tuple[Wave, ...]:
    """Each wave uses at most ``instances``; a run of more than that is a separate wave.

    Trials stay in their order: only the last wave of a trial is filled up with runs of the next one. Within a trial the
    largest runs are placed first, equal ones in their random order, and the waves follow in the random order of their
    first runs, so that no cell always runs beside the same cells.
    """
    filled: list[Wave] = []
    rest: Wave = ()
    for _, of_trial in groupby(runs, key=lambda run: run.trial):
        waves = _fill(_largest_first(of_trial), instances, rest)
        if rest:
            filled.append(waves.pop(0))
        # The emptiest wave is last, so that the next trial can use its free instances.
        rest = min(waves, key=_size, default=())
        filled += sorted((wave for wave in waves if wave is not rest), key=_place)
    return (*filled, *([rest] if rest else []))


def wave_size(runs: Sequence[Run], *, concurrency: int, instances: int | None) -> int | None:
    """``instances`` if they are filled in fewer waves than with ``concurrency`` runs at once; otherwise None."""
    if instances is None or len({_instances(run) for run in runs}) < 2:
        return None
    waves = wave_count(runs, concurrency=concurrency, instances=instances)
    is_better = waves < wave_count(runs, concurrency=concurrency, instances=None)
    return instances if is_better and waves <= MOST_WAVES else None


def wave_count(runs: Sequence[Run], *, concurrency: int, instances: int | None) -> int:
    """How many times the lane's instances are used in turn: its waves, or its runs ÷ ``concurrency``."""
    return -(-len(runs) // concurrency) if instances is None else len(fill_waves(runs, instances))


def _largest_first(runs: Iterable[Run]) -> list[Run]:
    return sorted(runs, key=lambda run: (-_instances(run), run.place or 0))


def _fill(runs: Iterable[Run], instances: int, begun: Wave) -> list[Wave]:
    """Puts each run into the fullest wave that has room for it."""
    waves: list[list[Run]] = [list(begun)] if begun else []
    for run in runs:
        fitting = [wave for wave in waves if _size(wave) + _instances(run) <= instances]
        if fitting:
            max(fitting, key=_size).append(run)
        else:
            waves.append([run])
    return [tuple(wave) for wave in waves]


def _place(wave: Wave) -> int:
    return min(run.place or 0 for run in wave)


def _size(wave: Sequence[Run]) -> int:
    return sum(map(_instances, wave))


def _instances(run: Run) -> int:
    return run.cell.settings.instance_count
