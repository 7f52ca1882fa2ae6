"""Runs: trials of cells, in the order in which they are submitted."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from traindyno.core.run.processes import dividing_batches, world_size
from traindyno.core.run.settings import MOST_SEED, Settings
from traindyno.core.suite.cells import Cell
from traindyno.core.suite.job_time import UPLOAD_SECONDS
from traindyno.core.suite.suite import Limits, Run, Suite

GRACE_SECONDS = 3600


def run_id_of(cell_id: str, trial: int) -> str:
    return f"{cell_id}-t{trial}"


def trial_runs(execution_id: str, cells: Sequence[Cell], trials: Iterable[int]) -> tuple[Run, ...]:
    return make_runs(execution_id, [(cell, trial) for trial in trials for cell in cells])


def make_runs(
    execution_id: str, wanted: Iterable[tuple[Cell, int]], *, round_number: int = 1
) -> tuple[Run, ...]:
    """Order the trials: all first trials, then all second trials, and so on, so that a slow hour
    affects every cell.

    The order within a trial is random, drawn from the execution's id, and differs between trials,
    so that no cell always follows the same one.

    The k-th run of each cell in a round is in the same block: a trial that is repeated belongs to
    the round in which it is, and not to the round of its first run.
    """
    in_order = sorted(
        wanted,
        key=lambda pair: (
            pair[1],
            hashlib.sha256(f"{execution_id} {pair[1]} {pair[0].cell_id}".encode()).digest(),
        ),
    )
    passes: Counter[str] = Counter()
    runs = []
    for place, (cell, trial) in enumerate(in_order, start=1):
        passes[cell.cell_id] += 1
        run_id = run_id_of(cell.cell_id, trial)
        block = f"{round_number}.{passes[cell.cell_id]}"
        runs.append(
            Run(
                run_id=run_id,
                execution_id=execution_id,
                trial=trial,
                cell=cell,
                place=place,
                block=block,
            )
        )
    return tuple(runs)


def round_of(run: Run) -> str:
    """The number of the round that the run was planned in."""
    return (run.block or "1").partition(".")[0]


def block_of(run: Run) -> str:
    """The run's block, counted over all executions."""
    return f"{run.execution_id} {run.block or run.trial}"


def with_seeds(suite: Suite, runs: Iterable[Run]) -> tuple[Run, ...]:
    """Each run with the seed that it trains with: its cell's seed plus 0 in trial 1, 1 in trial 2,
    and so on.

    Trials with one number have one seed in all cells, so that cells are compared at equal seeds. If
    the cells differ in their seeds, the seed is what the suite compares, and it stays as it is.
    """
    is_own = compares_seeds(suite)
    return tuple(
        replace(run, seed=trial_seed(run.cell.settings.seed, 1 if is_own else run.trial))
        for run in runs
    )


def trial_seed(base: int, trial: int) -> int:
    """The seed of a trial; after the largest seed comes 0."""
    return (base + trial - 1) % (MOST_SEED + 1)


def trained_settings(run: Run) -> Settings:
    """Settings that the program gets: a number instead of a search for the batch."""
    settings = run.cell.settings
    if settings.batch_search is None:
        return settings
    batch = run.found_batch or run.first_batch or settings.batch_size
    possible = dividing_batches(settings, world_size(settings) or 1)
    if possible and run.found_batch is None:
        batch = max((size for size in possible if size <= batch), default=possible[0])
    return replace(settings, batch_size_per_device=batch)


def compares_seeds(suite: Suite) -> bool:
    return len(values_in_cells(suite, "seed")) > 1


def values_in_cells(suite: Suite, name: str) -> set[Any]:
    """The distinct values of a setting in the cells."""
    return {getattr(cell.settings, name) for cell in suite.cells}


def waiting_seconds(limits: Limits) -> int:
    """The time limit of a task that waits for its job.

    SageMaker ends the job earlier, and ReconcileRuns finds jobs whose event was lost.
    """
    return limits.max_pending_seconds + limits.max_job_seconds + UPLOAD_SECONDS + GRACE_SECONDS
