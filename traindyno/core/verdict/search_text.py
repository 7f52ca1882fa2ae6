"""A search in sentences: which cells were dropped and why, and what is done instead of a search of earlier versions."""

from collections.abc import Iterator

from traindyno.core.costs.quantity_text import share_text
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.search.race import within_of
from traindyno.core.suite.suite import Suite
from traindyno.core.verdict.cell_row import CellRow
from traindyno.core.verdict.goal_metric import estimate_of
from traindyno.core.verdict.verdict import Verdict


def left_behind(verdict: Verdict) -> list[CellRow]:
    """The cells that a race dropped after one run: measured, and neither compared nor refused."""
    known = {verdict.recommended, *(rival.cell_id for rival in verdict.rivals), *verdict.refused}
    return [row for row in verdict.rows if row.trials == 1 and row.cell_id not in known]


def none_near(verdict: Verdict) -> str | None:
    """Why a race compared no other cell; None if it has dropped and outpaced none."""
    if left_behind(verdict) or any(Outcome.OUTPACED.value in row.outcomes for row in verdict.rows):
        within = within_of(has_target=verdict.goal.target is not None)
        return f"no other cell was within {share_text(within, digits=0)} of it"
    return None


def describe_search(verdict: Verdict) -> Iterator[str]:
    best = verdict.estimate(verdict.metric)
    found = [estimate for row in left_behind(verdict) if (estimate := estimate_of(row, verdict.metric))]
    if best and found:
        cells = "1 cell was" if len(found) == 1 else f"{len(found)} cells were"
        behind = sorted(estimate.mean / best.mean - 1 for estimate in found)
        reach = share_text(behind[0]) if len(found) == 1 else f"{share_text(behind[0])} to {share_text(behind[-1])}"
        word = "slower" if verdict.metric.is_time else "dearer"
        yield f"{cells} dropped after one run: {reach} {word} than the recommended cell."


def describe_replaced(suite: Suite) -> str | None:
    """What is done instead of a search that earlier versions had; None for today's."""
    if not suite.search.is_replaced:
        return None
    return (
        f"search: {suite.search} is read as search: race: every cell runs once, and those that are close behind the"
        " best one run again."
    )
