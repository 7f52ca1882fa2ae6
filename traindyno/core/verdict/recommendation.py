"""The best cell for the goal, and how each other one compares with it."""

from collections.abc import Sequence
from dataclasses import dataclass

from traindyno.core.verdict.cell_trials import CellTrials, Noise, compare_cells
from traindyno.core.verdict.quantity import Quantity
from traindyno.figures.estimates import Comparison
from traindyno.figures.hosts import pool_of
from traindyno.figures.settle import Rival, ToDecide, settle


@dataclass(frozen=True, slots=True, kw_only=True)
class Recommendation:
    """``rivals`` are all other eligible cells, the nearest first."""

    best: CellTrials
    rivals: tuple[Rival, ...]
    to_decide: ToDecide

    @property
    def comparisons(self) -> list[Comparison]:
        return [rival.comparison for rival in self.rivals]


def recommend(
    eligible: Sequence[CellTrials],
    quantity: Quantity,
    noise: Noise,
    *,
    tolerance: float,
    significance: float,
) -> Recommendation | None:
    """The cell with the smallest ``quantity``, which all ``eligible`` cells have.

    None without eligible cells.
    """
    if not eligible:
        return None
    long = {
        each.cell.cell_id: mean
        for each in eligible
        if (mean := each.confirmed_mean(quantity)) is not None
    }
    long = long if len(long) > 1 else {}

    def place(each: CellTrials) -> tuple[bool, float]:
        """Cells that long runs confirm come first: only they show what trials are too short for."""
        mean = long.get(each.cell.cell_id)
        level = (
            noise.level(each, quantity) if mean is None else mean + each.extra(quantity).log_factor
        )
        return mean is None, level

    best, *others = sorted(eligible, key=place)
    by_id = {each.cell.cell_id: each for each in others}
    independent = Noise(cells=noise.cells, spreads=noise.spreads)

    def compare_independently(cell_ids: Sequence[str]) -> tuple[list[Comparison], int]:
        cells = [by_id[cell_id] for cell_id in cell_ids]
        most = max(len(each.values(quantity)) for each in (best, *cells))
        return list(_compare_all(best, cells, quantity, independent).values()), most

    rivals, to_decide = settle(
        _compare_all(best, others, quantity, noise),
        compare_independently,
        tolerance=tolerance,
        significance=significance,
    )
    return Recommendation(best=best, rivals=rivals, to_decide=to_decide)


def _compare_all(
    best: CellTrials, others: Sequence[CellTrials], quantity: Quantity, noise: Noise
) -> dict[str, Comparison]:
    """By cell, the best one ÷ it."""
    pool = pool_of([each.trials(quantity) for each in (best, *others)])
    found = {
        other.cell.cell_id: compare_cells(best, other, quantity, noise, pool) for other in others
    }
    return {cell_id: comparison for cell_id, comparison in found.items() if comparison}
