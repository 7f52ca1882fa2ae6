"""A race in sentences: which cells were dropped, and why."""

from collections.abc import Iterator

from traindyno.core.costs.quantity_text import share_text
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.search.race import within_of
from traindyno.core.verdict.verdict import Verdict


def left_behind(verdict: Verdict) -> list[float]:
    """By which shares the cells are behind that a race dropped after one run, as the table shows them, sorted."""
    failed = {row.cell_id for row in verdict.rows if row.failed}
    return sorted(1 / min(1.0, ratio) - 1 for cell_id, ratio in verdict.dropped.items() if cell_id not in failed)


def none_near(verdict: Verdict) -> str | None:
    """Why a race compared no other cell; None if it has dropped and outpaced none."""
    behind = left_behind(verdict)
    if verdict.dropped or any(Outcome.OUTPACED.value in row.outcomes for row in verdict.rows):
        within = within_of(has_target=verdict.goal.target is not None)
        if behind and behind[0] < within:
            closest = share_text(behind[0])
            return f"only it was measured again; the closest alternative was {closest} behind in its single run"
        if verdict.dropped and not behind:
            return "only it was measured again, and trials of the others failed"
        return f"no other cell was within {share_text(within, digits=0)} of it"
    return None


def describe_search(verdict: Verdict) -> Iterator[str]:
    behind = left_behind(verdict)
    if behind:
        cells = "1 cell was" if len(behind) == 1 else f"{len(behind)} cells were"
        reach = share_text(behind[0]) if len(behind) == 1 else f"{share_text(behind[0])} to {share_text(behind[-1])}"
        word = "slower" if verdict.metric.is_time else "dearer"
        yield f"{cells} dropped after one run: {reach} {word} than the recommended cell."
