"""Waves: jobs of different size that fill the instances of a lane together.

A lane's waves run one after another.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

from traindyno.core.documents.versions import Format
from traindyno.core.jobs.job import Job, owner_document
from traindyno.core.suite.runs import waiting_seconds
from traindyno.core.suite.suite import Limits

# The state of an execution contains pointers to a round's waves; Step Functions limits it to 256
# KiB.
MOST_WAVES = 500

Wave = tuple[Job, ...]
WAVE_ITEM = Format(name="wave item", version=1)


def fill_waves(jobs: Sequence[Job], instances: int) -> tuple[Wave, ...]:
    """Each wave uses at most ``instances``; a job of more than that is a separate wave.

    Trials stay in their order: only the last wave of a trial is filled up with jobs of the next
    one. Within a trial the largest jobs are placed first, equal ones in their random order, and the
    waves follow in the random order of their first jobs, so that no cell always runs beside the
    same cells.
    """
    filled: list[Wave] = []
    rest: Wave = ()
    for _, of_trial in groupby(jobs, key=lambda job: job.trial):
        waves = _fill(
            sorted(of_trial, key=lambda job: (-job.instance_count, job.place)), instances, rest
        )
        if rest:
            filled.append(waves.pop(0))
        # The emptiest wave is last, so that the next trial can use its free instances.
        rest = min(waves, key=_size, default=())
        filled += sorted(
            (wave for wave in waves if wave is not rest),
            key=lambda wave: min(job.place for job in wave),
        )
    return (*filled, *([rest] if rest else []))


def wave_size(jobs: Sequence[Job], *, concurrency: int, instances: int | None) -> int | None:
    """Number of instances of a wave, if their number limits it, else None.

    It limits if ``instances`` are filled in fewer waves than with ``concurrency`` jobs at once.
    """
    if instances is None or len({job.instance_count for job in jobs}) < 2:
        return None
    waves = wave_count(jobs, concurrency=concurrency, instances=instances)
    is_better = waves < wave_count(jobs, concurrency=concurrency, instances=None)
    return instances if is_better and waves <= MOST_WAVES else None


def wave_count(jobs: Sequence[Job], *, concurrency: int, instances: int | None) -> int:
    """How many times the lane's instances are used in turn: its waves, or its jobs ÷
    ``concurrency``.
    """
    return -(-len(jobs) // concurrency) if instances is None else len(fill_waves(jobs, instances))


def wave_counts(
    rounds: Sequence[Sequence[Job]], *, concurrency: int, instances: int | None
) -> list[int]:
    return [wave_count(jobs, concurrency=concurrency, instances=instances) for jobs in rounds]


def _fill(jobs: Iterable[Job], instances: int, begun: Wave) -> list[Wave]:
    """Put each job into the fullest wave that has room for it."""
    waves: list[list[Job]] = [list(begun)] if begun else []
    for job in jobs:
        fitting = [wave for wave in waves if _size(wave) + job.instance_count <= instances]
        if fitting:
            max(fitting, key=_size).append(job)
        else:
            waves.append([job])
    return [tuple(wave) for wave in waves]


def _size(wave: Sequence[Job]) -> int:
    return sum(job.instance_count for job in wave)


def wave_items(jobs: Iterable[Job], limits: Limits) -> list[dict[str, Any]]:
    """Jobs as the state machine gets them.

    ``run`` in an item is the run of a job of its own; ``job`` has several.
    """
    seconds = waiting_seconds(limits)
    owners = (job if job.is_shared else job.runs[0] for job in jobs)
    return [
        WAVE_ITEM.mark({**owner_document(owner), "timeout_seconds": seconds}) for owner in owners
    ]


def run_ids_of(items: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """Raises VersionUnknown."""
    read = map(WAVE_ITEM.read, items)
    runs = (
        run
        for owner in read
        for run in (owner["job"]["runs"] if "job" in owner else [owner["run"]])
    )
    return tuple(str(run["run_id"]) for run in runs)
