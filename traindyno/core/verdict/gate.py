"""A gate on a change: whether an execution is shown to be at most a tolerance slower and dearer
than its baseline.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from math import ceil, log

from traindyno.core.measurement.loss_parity import ParityFinding
from traindyno.core.verdict.cell_row import CellRow
from traindyno.core.verdict.comparison import CellChange, ExecutionComparison
from traindyno.figures.distributions import SIGNIFICANCE, t_quantile
from traindyno.figures.estimates import Comparison
from traindyno.figures.selection import POWER

# Beyond so many jobs of each execution, none are proposed.
MOST_JOBS = 100
SLOWER = "slower"
DEARER = "dearer"


class GateFinding(StrEnum):
    """What is shown: ``HOLDS``, every figure is worse by at most the tolerance; ``WORSE``, one is
    worse by more; ``OPEN``, neither.
    """

    HOLDS = "holds"
    WORSE = "worse"
    OPEN = "open"


@dataclass(frozen=True, slots=True, kw_only=True)
class GatedFigure:
    """The time or the cost of one cell's whole work, execution ÷ baseline.

    ``jobs``: of each execution, as many as would decide with a power of 80 %; None where no spread
    is known, where further jobs meet the same level of one machine, and beyond ``MOST_JOBS``.
    ``reason``: why nothing can decide.
    """

    label: str
    worse: str
    finding: GateFinding
    comparison: Comparison | None
    jobs: int | None
    reason: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """Whether any figure of an execution became worse than in its baseline.

    ``dropped`` are labels of cells that the baseline's race did not run again; nothing holds them
    to a figure.
    """

    tolerance: float
    finding: GateFinding
    figures: tuple[GatedFigure, ...]
    dropped: tuple[str, ...]

    @property
    def worse(self) -> list[str]:
        """In what a cell could be worse: dearer only where prices are known."""
        return list(dict.fromkeys(figure.worse for figure in self.figures))

    def of(self, finding: GateFinding) -> list[GatedFigure]:
        return [figure for figure in self.figures if figure.finding is finding]


def check_gate(compared: ExecutionComparison, tolerance: float) -> Gate:
    """The gate over the cells that both executions have, without those that the baseline dropped.

    A figure is worse at a one-sided 5 %, shared among all figures (Bonferroni), so that a change
    without effect fails in at most 5 of 100; it holds at an own 5 %, since every figure has to.

    Args:
        compared: the baseline first.
        tolerance: the share by which time and cost may rise, such as 0.03.
    """
    is_race = compared.is_race and any(cell.first.trials > 1 for cell in compared.cells)
    dropped = [cell for cell in compared.cells if is_race and _is_dropped(cell.first)]
    judged = [cell for cell in compared.cells if cell not in dropped]
    pairs = [
        (cell, worse, comparison)
        for cell in judged
        for worse, comparison in _figures_of(cell).items()
    ]
    figures = tuple(
        _figure(cell, worse, comparison, tolerance, SIGNIFICANCE / len(pairs))
        for cell, worse, comparison in pairs
    )
    findings = {figure.finding for figure in figures}
    decisive = (GateFinding.WORSE, GateFinding.OPEN)
    finding = next((worst for worst in decisive if worst in findings), GateFinding.HOLDS)
    return Gate(
        tolerance=tolerance,
        finding=finding,
        figures=figures,
        dropped=tuple(cell.label for cell in dropped),
    )


def _is_dropped(row: CellRow) -> bool:
    """Measured once, or ended because it could not win."""
    return row.trials == 1 or (row.trials == 0 and row.outpaced > 0)


def _figures_of(cell: CellChange) -> Mapping[str, Comparison | None]:
    """Its time, and its cost where both executions know a price."""
    if cell.usd is None:
        return {SLOWER: cell.seconds}
    return {SLOWER: cell.seconds, DEARER: cell.usd}


def _figure(
    cell: CellChange,
    worse: str,
    comparison: Comparison | None,
    tolerance: float,
    significance: float,
) -> GatedFigure:
    finding = GateFinding.OPEN
    jobs = None
    reason = _reason(cell)
    if reason is None and comparison is not None and comparison.standard_error is not None:
        most = 1 + tolerance
        if (comparison.p_at_most(most) or 0.0) < significance:
            finding = GateFinding.WORSE
        elif (comparison.p_at_least(most) or 0.0) < SIGNIFICANCE:
            finding = GateFinding.HOLDS
        else:
            jobs = jobs_to_decide(comparison, cell.jobs, tolerance, significance)
    return GatedFigure(
        label=cell.label,
        worse=worse,
        finding=finding,
        comparison=comparison,
        jobs=jobs,
        reason=reason,
    )


def _reason(cell: CellChange) -> str | None:
    if cell.parity is not None and cell.parity.finding is ParityFinding.DIFFERS:
        return "its losses differ, so the work is not the same"
    for side, row in (("the baseline", cell.first), ("the execution", cell.second)):
        if not row.trials:
            return f"{side} measured no trial of it"
        if row.trials == 1:
            return f"{side} has one trial of it, whose scatter is unknown"
    return None


def jobs_to_decide(
    comparison: Comparison, jobs: int | None, tolerance: float, significance: float
) -> int | None:
    """Jobs of each execution that decide with a power of 80 %, if the ratio is as measured.

    Stein's two-stage rule (1945), as in ``trials_to_decide``; a job is also a draw of hosts, so
    that all of the variance falls with their number.

    Args:
        jobs: of the execution that has fewer, as measured; None where further ones tell nothing.
        significance: of one figure's claim that it is worse.
    """
    error = comparison.standard_error
    degrees = comparison.degrees_of_freedom
    apart = log(comparison.ratio) - log(1 + tolerance)
    if jobs is None or error is None or degrees is None or not apart:
        return None
    level = significance if apart > 0 else SIGNIFICANCE
    needed = (t_quantile(1 - level, degrees) + t_quantile(POWER, degrees)) * error / abs(apart)
    further = max(jobs + 1, ceil(jobs * needed**2))
    return further if further <= MOST_JOBS else None
