"""The batch of the cells that search it: what the first trial found is the batch of all later
ones.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from traindyno.core.documents.stored import StoredPart
from traindyno.core.jobs.outcome import HAD_BATCH
from traindyno.core.jobs.run_end import NONE_FITS
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.run.processes import dividing_batches, world_size
from traindyno.core.step_log.line import BATCH_SEARCH
from traindyno.core.suite.cells import Cell
from traindyno.core.suite.suite import Run, Suite


def searches_batch(cells: Iterable[Cell]) -> bool:
    return any(cell.settings.batch_search for cell in cells)


def found_batches(results: Iterable[RunResult]) -> dict[str, int]:
    """Cell id → the batch of its earliest trial that found one and was measured with it."""
    batches: dict[str, int] = {}
    for result in sorted(results, key=lambda result: result.run.trial):
        if result.found_batch is not None and result.outcome in HAD_BATCH:
            batches.setdefault(result.run.cell.cell_id, result.found_batch)
    return batches


def batch_of_cell(results: Iterable[RunResult]) -> int | None:
    """What the cell's runs found, ``NONE_FITS`` if no batch fits. None if it is unknown."""
    batches = list[int]()
    for result in results:
        finding = result.batch_finding
        batch = result.found_batch
        if finding is not None and not finding.fits and result.outcome not in HAD_BATCH:
            batch = None if finding.fits is None else NONE_FITS
        if batch is not None:
            batches.append(batch)
    return next((batch for batch in batches if batch != NONE_FITS), NONE_FITS if batches else None)


def larger_may_fit(result: RunResult) -> bool:
    """Whether each probe fits, none was of a larger batch than the run's, and the settings allow
    one.
    """
    finding = result.batch_finding
    settings = result.run.cell.settings
    if (
        finding is None
        or not finding.fits
        or not all(p.fits and p.batch <= finding.batch for p in finding.probes)
    ):
        return False
    possible = dividing_batches(settings, world_size(settings) or 1)
    return possible is None or any(batch > finding.batch for batch in possible)


@dataclass(frozen=True, slots=True, kw_only=True)
class CellBatch(StoredPart):
    """The batch per device that a cell was measured with, and the memory that it took."""

    kind: ClassVar[str] = "batch"
    #: Largest peak of a device in any trial.
    peak_memory_bytes: int | None = None
    #: The batch that was found, ``NONE_FITS`` if none fits; None unless the cell searches it.
    found: int | None = None
    #: No probe ran out of memory.
    larger_may_fit: bool = False
    #: How scripts of its trials reduced the batch until it fitted: "32 became 8".
    reduced: tuple[str, ...] = ()


def measure_batch(results: Sequence[RunResult]) -> CellBatch:
    batch = batch_of_cell(results)
    facts = [result.facts for result in results]
    peaks = [result.measured.peak_memory_bytes or 0 for result in results if result.measured]
    return CellBatch(
        peak_memory_bytes=max(peaks, default=0) or None,
        found=batch,
        larger_may_fit=any(
            larger_may_fit(result) and batch_of_cell([result]) == batch for result in results
        ),
        reduced=tuple(sorted({str(fact[BATCH_SEARCH]) for fact in facts if BATCH_SEARCH in fact})),
    )


def with_batches(
    runs: Sequence[Run], results: Iterable[RunResult], first_batches: Mapping[str, int]
) -> tuple[Run, ...]:
    """Each run of a cell that searches, with the batch that was found and the one to probe
    first.
    """
    batches = found_batches(results)
    return tuple(
        replace(
            run,
            found_batch=batches.get(run.cell.cell_id),
            first_batch=first_batches.get(run.cell.cell_id),
        )
        if run.cell.settings.batch_search
        else run
        for run in runs
    )


def missing_trials(
    suite: Suite, cells: Iterable[Cell], results: Sequence[RunResult]
) -> list[tuple[Cell, int]]:
    """Missing trials of a grid after its first round.

    A cell that was not measured with any batch has no further trial.
    """
    measured = {result.run.cell.cell_id for result in results if result.outcome in HAD_BATCH}
    done = {(result.run.cell.cell_id, result.run.trial) for result in results}
    going_on = [
        cell for cell in cells if not cell.settings.batch_search or cell.cell_id in measured
    ]
    trials = range(2, suite.measurement.trials + 1)
    return [
        (cell, trial) for trial in trials for cell in going_on if (cell.cell_id, trial) not in done
    ]
