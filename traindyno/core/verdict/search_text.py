"""A search in sentences: how much was measured, and which cells were dropped and why."""

from collections.abc import Iterator, Sequence

from traindyno.core.costs.quantity_text import share_text
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.search.race import within_of
from traindyno.core.search.survey import LEAST_CHANCE
from traindyno.core.verdict.cell_row import CellRow
from traindyno.core.verdict.dropped import DroppedCell
from traindyno.core.verdict.goal_metric import estimate_of
from traindyno.core.verdict.verdict import Verdict


def left_behind(verdict: Verdict) -> list[CellRow]:
    """The cells that a race dropped after one run: measured, and neither compared nor refused."""
    if verdict.dropped:
        return []
    known = {verdict.recommended, *(rival.cell_id for rival in verdict.rivals), *verdict.refused}
    return [row for row in verdict.rows if row.trials == 1 and row.cell_id not in known]


def none_near(verdict: Verdict) -> str | None:
    """Why a race compared no other cell; None if it has dropped and outpaced none."""
    if left_behind(verdict) or any(Outcome.OUTPACED.value in row.outcomes for row in verdict.rows):
        within = within_of(has_target=verdict.goal.target is not None)
        return f"no other cell was within {share_text(within, digits=0)} of it"
    return None


def describe_search(verdict: Verdict) -> Iterator[str]:
    yield from _describe_race(verdict)
    if not verdict.dropped:
        return
    measured = sum(bool(row.outcomes) for row in verdict.rows)
    yield f"The search measured {measured} of {len(verdict.rows)} cells and predicted the others from a model."
    largest = max(cell.chance for cell in verdict.dropped)
    if largest <= LEAST_CHANCE:
        count, word = len(verdict.dropped), "faster" if verdict.metric.is_time else "cheaper"
        yield (
            f"The model dropped {count} {'cell' if count == 1 else 'cells'}. The probability that any one of them is"
            f" more than {share_text(verdict.tolerance)} {word} is at most {share_text(largest)}."
        )


def _describe_race(verdict: Verdict) -> Iterator[str]:
    best = verdict.estimate(verdict.metric)
    found = [estimate for row in left_behind(verdict) if (estimate := estimate_of(row, verdict.metric))]
    if best and found:
        cells = "1 cell was" if len(found) == 1 else f"{len(found)} cells were"
        behind = sorted(estimate.mean / best.mean - 1 for estimate in found)
        reach = share_text(behind[0]) if len(found) == 1 else f"{share_text(behind[0])} to {share_text(behind[-1])}"
        word = "slower" if verdict.metric.is_time else "dearer"
        yield f"{cells} dropped after one run: {reach} {word} than the recommended cell."


def describe_unfinished_search(verdict: Verdict) -> Iterator[str]:
    """Says so if a cap, a limit or trials without information ended the search before the model was certain enough."""
    promising = sorted((cell for cell in verdict.dropped if cell.chance > LEAST_CHANCE), key=lambda cell: -cell.chance)
    if promising:
        first = promising[0]
        more = f" and {len(promising) - 1} more" if len(promising) > 1 else ""
        yield (
            f"The search was not finished: {verdict.row(first.cell_id).label}{more} may be better than the recommended"
            f" cell (probability {share_text(first.chance)} by the model)."
        )


def describe_dropped(verdict: Verdict) -> Iterator[str]:
    """All dropped cells by name, with the model's forecast for each."""
    unmeasured = [cell for cell in verdict.dropped if not cell.trials]
    if unmeasured:
        yield f"Dropped without a measurement: {_names(verdict, unmeasured)}."
    measured = [cell for cell in verdict.dropped if cell.trials]
    if measured:
        yield f"Dropped after one trial: {_names(verdict, measured)}."


def _names(verdict: Verdict, cells: Sequence[DroppedCell]) -> str:
    return "; ".join(f"{verdict.row(cell.cell_id).label} ({_expectation(cell)})" for cell in cells)


def _expectation(cell: DroppedCell) -> str:
    more = f"{cell.ratio - 1:+.0%}, {cell.interval.low - 1:+.0%} to {cell.interval.high - 1:+.0%}".replace("%", " %")
    fails = f", fails with probability {share_text(cell.failure, digits=0)}" if cell.failure > LEAST_CHANCE else ""
    return f"{more.replace('-', '−')}{fails}"
