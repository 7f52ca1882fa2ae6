"""A finding in sentences and as a table, for a terminal, a page or a notebook."""

from collections.abc import Iterator, Sequence

from traindyno.api.judging import is_money
from traindyno.api.trial_rows import TrialColumns
from traindyno.core.costs.quantity_text import (
    change_interval_text,
    change_text,
    counted,
    estimate_text,
    joined,
    number_text,
    tolerance_text,
)
from traindyno.figures.judge import JudgedCell, TrialsClaim, TrialsFinding
from traindyno.figures.selection import Relation

MOST_NAMED = 4
HEADING = ("cell", "trials", "mean", "against the best", "finding")
RELATIONS = {
    None: "best",
    Relation.BEATEN: "worse",
    Relation.EQUIVALENT: "as good",
    Relation.NOT_BETTER: "not better",
    Relation.OPEN: "open",
    Relation.UNKNOWN: "too few trials",
}
AHEAD = "ahead so far"  # the first cell of a finding that is undecided
UNDECIDED = (TrialsClaim.UNDECIDED, TrialsClaim.TOO_FEW_TRIALS)
LITTLE_CORRELATED = 0.1


def finding_text(finding: TrialsFinding) -> str:
    """What the trials show, and what would settle the rest, in sentences."""
    return "\n".join(finding_lines(finding))


def finding_lines(finding: TrialsFinding) -> Iterator[str]:
    yield _headline(finding)
    if finding.claim in (TrialsClaim.BEST, TrialsClaim.WITHIN_TOLERANCE):
        wrong = f"{finding.significance * 100:g}"
        yield (
            f"If trials are independent, at most {wrong} of 100 such tables make a claim that is "
            "wrong."
        )
    yield from _to_decide(finding)
    correlation = finding.serial_correlation
    if correlation is not None and correlation > LITTLE_CORRELATED:
        yield (
            f"Successive trials of a cell are correlated ({correlation:.2f}), as under a drift; "
            "the intervals allow for it."
        )


def _headline(finding: TrialsFinding) -> str:
    best = finding.best.cell
    extreme = "highest" if finding.is_rate else "lowest"
    tolerance = tolerance_text(finding.tolerance)
    match finding.claim:
        case TrialsClaim.BEST:
            nearest = finding.cells[1]
            return (
                f"Use {best}: its value is the {extreme}. The next best, {nearest.cell}, is at "
                f"{_change(nearest)}."
            )
        case TrialsClaim.WITHIN_TOLERANCE:
            return f"Use {best}: no other cell is better by more than {tolerance}."
        case TrialsClaim.UNDECIDED:
            open_cells = finding.related(Relation.OPEN)
            return (
                f"Undecided between {_named([finding.best, *open_cells])}: {best} has the "
                f"{extreme} mean, but {open_cells[0].cell}, at {_change(open_cells[0])}, may be as "
                "good."
            )
        case TrialsClaim.TOO_FEW_TRIALS:
            single = [cell for cell in finding.cells if cell.estimate.count == 1]
            return (
                f"Undecided: {best} has the {extreme} mean, but of {_named(single)} there is one "
                "trial, whose scatter is unknown."
            )


def _named(cells: Sequence[JudgedCell]) -> str:
    names = [cell.cell for cell in cells[:MOST_NAMED]]
    more = len(cells) - len(names)
    return joined([*names, counted(more, "other")] if more else names)


def _change(cell: JudgedCell) -> str:
    if cell.change is None:
        return ""
    interval = cell.change_interval
    if interval is None:
        return change_text(cell.change)
    return change_interval_text(cell.change, interval.low, interval.high)


def _to_decide(finding: TrialsFinding) -> Iterator[str]:
    if finding.claim is not TrialsClaim.UNDECIDED:
        return
    if finding.to_decide.trials is not None:
        places = ", in as many blocks or on as many hosts," if finding.are_repeated else ""
        yield f"{finding.to_decide.trials} trials of each of these cells{places} would decide."
    elif finding.to_decide.other_hosts:
        yield "More trials on the same hosts don't decide: run the cells on further hosts."
    else:
        yield "No reasonable number of trials decides: the cells are too much alike."


def finding_rows(finding: TrialsFinding) -> list[tuple[str, ...]]:
    """The rows of a table, below ``HEADING``."""
    relations = RELATIONS | ({None: AHEAD} if finding.claim in UNDECIDED else {})
    return [
        (
            cell.cell,
            str(cell.estimate.count),
            _estimate(cell, finding.unit),
            _change(cell),
            relations[cell.relation],
        )
        for cell in finding.cells
    ]


def _estimate(cell: JudgedCell, unit: str | None) -> str:
    estimate = cell.estimate
    suffix = "" if unit is None else f" {unit}"

    def text(value: float) -> str:
        return f"{number_text(value, digits=4)}{suffix}"

    interval = estimate.interval
    if interval is None:
        return text(estimate.mean)
    return estimate_text(estimate.mean, interval.low, interval.high, text)


def unknown_lines(columns: TrialColumns) -> Iterator[str]:
    """What the table does not have, and what follows from it."""
    if not is_money(columns.value):
        yield f"Prices are unknown: the best cell by {columns.value} may not be the cheapest."
    if columns.host is None:
        yield (
            "Hosts are unknown: if all trials of a cell ran on one machine, its part of the "
            "difference is not in the intervals."
        )
    if columns.order is None:
        yield (
            "The order of the trials is unknown: a drift over them, such as a slower afternoon, is "
            "not in the intervals."
        )
    if columns.block is None:
        yield "No blocks are named: what trials of one day or node share is taken for noise."
