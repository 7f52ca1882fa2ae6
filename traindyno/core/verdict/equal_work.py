"""The same work in every cell: an example may contain more work in one cell than in another (packing, padding)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from traindyno.core.suite.suite import Cell
from traindyno.core.verdict.cell_trials import CellTrials


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """The unit of work (``tokens`` without padding, ``rows``, ``samples``), and the work in one example."""

    unit: str
    per_example: float


def equalise_work(trials: Sequence[CellTrials], baseline: Cell | None) -> tuple[CellTrials, ...]:
    """Gives each run as many of its own examples as contain the work of the suite's examples in the reference cell.

    The reference is the baseline, or the first cell that was measured. Cells with another unit stay as they are:
    ``find_unlike_work`` names them.
    """
    reference = reference_work(trials, baseline)
    if reference is None:
        return tuple(trials)
    return tuple(_with_work_of(reference, each) for each in trials)


def reference_work(trials: Sequence[CellTrials], baseline: Cell | None) -> Work | None:
    first = sorted(trials, key=lambda each: baseline is None or each.cell.cell_id != baseline.cell_id)
    return next((work for each in first if (work := work_of(each))), None)


def work_of(trials: CellTrials) -> Work | None:
    """None if nothing was measured, or if the unit is tokens and the log does not count them."""
    known = [(each.work_unit, amount) for each in trials.measured if (amount := each.work_per_example)]
    return Work(unit=known[0][0], per_example=fmean([amount for _, amount in known])) if known else None


def _with_work_of(reference: Work, trials: CellTrials) -> CellTrials:
    own = work_of(trials)
    if own is None or own.unit != reference.unit or own.per_example == reference.per_example:
        return trials
    factor = reference.per_example / own.per_example
    measured = tuple(replace(each, examples=max(1, round(each.examples * factor))) for each in trials.measured)
    return replace(trials, measured=measured)
