"""The suite's answer: which cell to use, by what margin, how certain, and what would change it."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import Any

from traindyno.core.documents.stored import from_document, to_document
from traindyno.core.documents.versions import Format
from traindyno.core.measurement.loss_parity import LossParity
from traindyno.core.suite.goal import Goal
from traindyno.core.verdict.cell_row import CellRow
from traindyno.core.verdict.conditions import Confound, Sensitivity
from traindyno.figures.distributions import SIGNIFICANCE
from traindyno.figures.estimates import Estimate, Interval
from traindyno.figures.in_job.run_scatter import NO_SCATTER, RunScatter
from traindyno.figures.selection import (
    Relation,
    Rival,
    ToDecide,
)
from traindyno.figures.table import FigureColumn

VERDICT = Format(name="verdict", version=1)


class Finding(StrEnum):
    """How reliable the recommendation is."""

    RECOMMENDED = "recommended"
    WITHIN_TOLERANCE = "within_tolerance"
    UNDECIDED = "undecided"
    TOO_FEW_TRIALS = "too_few_trials"
    ONE_SEED = "one_seed"
    ONLY_ONE = "only_one"
    UNLIKE_WORK = "unlike_work"
    NONE_WITHIN_LIMIT = "none_within_limit"
    NONE_MEASURED = "none_measured"

    @property
    def is_settled(self) -> bool:
        return self in (Finding.RECOMMENDED, Finding.WITHIN_TOLERANCE)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgainstBaseline:
    """The recommended cell against the baseline's: ``ratio`` is recommended ÷ baseline.

    ``interval`` is corrected for the selection of the recommended cell.
    """

    cell_id: str
    ratio: float
    interval: Interval | None
    is_detected: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Likeness:
    """Whether the cells did alike work, and what else differs between them."""

    #: Why cells do unlike work, so that none is recommended.
    unlike: str | None = None
    confounds: tuple[Confound, ...] = ()
    parities: tuple[LossParity, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingRuns:
    """The planned runs that have no result; nothing else of the verdict counts them.

    ``baseline`` is the id of the baseline's cell, if none of its runs was measured.
    """

    planned: int = 0
    run_ids: tuple[str, ...] = ()
    baseline: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The answer: ``recommended`` is the best cell by its mean, ``finding`` says how reliable that
    is.
    """

    suite_name: str
    goal: Goal
    metric: FigureColumn
    examples: int
    tolerance: float
    #: The level of this look at the results.
    significance: float
    finding: Finding
    recommended: str | None
    #: All other cells that qualify, the nearest first, each compared with the recommended one.
    rivals: tuple[Rival, ...]
    to_decide: ToDecide
    against_baseline: AgainstBaseline | None
    #: Cell id → why a cell that was measured can't be recommended.
    refused: Mapping[str, str]
    #: All cells; the figures of the recommended one are corrected for its selection.
    rows: tuple[CellRow, ...]
    sensitivity: Sensitivity
    likeness: Likeness
    spent_usd: Decimal | None
    is_simulated: bool
    missing: MissingRuns
    #: Cell id → recommended ÷ it, of cells that a race left out after one run.
    dropped: Mapping[str, float]
    #: The scatter of single runs.
    scatter: RunScatter = NO_SCATTER
    #: The level of all looks together.
    level: float = SIGNIFICANCE

    @property
    def runner_up(self) -> Rival | None:
        return self.rivals[0] if self.rivals else None

    def related(self, *relations: Relation) -> tuple[Rival, ...]:
        return tuple(rival for rival in self.rivals if rival.relation in relations)

    @property
    def ranked_rows(self) -> tuple[CellRow, ...]:
        """The recommended cell first, then the others by the goal's metric."""

        def place(row: CellRow) -> float:
            estimate = row.estimate(self.metric)
            return estimate.mean if estimate else float("inf")

        return tuple(
            sorted(self.rows, key=lambda row: (row.cell_id != self.recommended, place(row)))
        )

    def row(self, cell_id: str) -> CellRow:
        return next(row for row in self.rows if row.cell_id == cell_id)

    @property
    def best(self) -> CellRow | None:
        """The row of the recommended cell."""
        return self.row(self.recommended) if self.recommended else None

    def estimate(self, metric: FigureColumn) -> Estimate | None:
        """The metric of the recommended cell, corrected for its selection."""
        return self.best.estimate(metric) if self.best else None


def verdict_document(verdict: Verdict) -> dict[str, Any]:
    return VERDICT.mark(to_document(verdict))


def parse_verdict(document: Mapping[str, Any]) -> Verdict:
    """Raises VersionUnknown.

    An earlier one has the corrected row of the recommended cell apart, as ``expected``.
    """
    stored = VERDICT.read(document)
    corrected = stored.pop("expected", None)
    if corrected is not None:
        stored["rows"] = [
            corrected if row["cell_id"] == corrected["cell_id"] else row for row in stored["rows"]
        ]
    return from_document(stored, Verdict)
