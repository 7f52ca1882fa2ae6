"""The model-based search in sentences: how much was measured, and which cells were dropped and why."""

from collections.abc import Iterator, Sequence

from traindyno.core.costs.quantity_text import share_text
from traindyno.core.search.survey import LEAST_CHANCE
from traindyno.core.verdict.dropped import DroppedCell
from traindyno.core.verdict.verdict import Verdict


def describe_search(verdict: Verdict) -> Iterator[str]:
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
