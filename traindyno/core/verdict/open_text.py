"""What the trials leave open, what would settle it, and which cells a race dropped, in
sentences.
"""

from collections.abc import Iterator, Sequence
from math import expm1

from traindyno.core.costs.quantity_text import share_text
from traindyno.core.verdict.cell_row import CellRow
from traindyno.core.verdict.verdict import Finding, Verdict
from traindyno.figures.selection import Relation

_MOST_NAMED = 3


def open_reasons_text(verdict: Verdict) -> str:
    """Open reasons of the recommended cell and of cells that may be as good."""
    rows = _open_rows(verdict)
    reasons = [(row.label, reason) for row in rows for reason in row.steadiness.undecided_reasons]
    reasons += [
        (
            row.label,
            f"{hazard.low:.1g} to {hazard.high:.2g} interruptions per instance-hour are possible",
        )
        for row in _rows_of_unknown_hazard(verdict)
        if (hazard := row.hosts.hazard)
    ]
    reasons += [
        (row.label, "faults of the service may be its own")
        for row in rows
        if row.hosts.uneven_faults is not None
    ]
    labels: dict[str, list[str]] = {}
    for label, reason in reasons:
        labels.setdefault(reason, []).append(f"of {label}")
    texts = [f"{' and '.join(named)}, {reason}" for reason, named in labels.items()]
    return f": {'; '.join(texts[:_MOST_NAMED])}" if texts else ""


def describe_open(verdict: Verdict) -> Iterator[str]:
    """What a person can do."""
    is_open = verdict.finding is Finding.UNDECIDED and verdict.to_decide.longer_trials
    if is_open and any(row.steadiness.undecided_reasons for row in _open_rows(verdict)):
        longer = (
            "more steps of the script" if verdict.to_decide.is_script else "measurement.max_steps"
        )
        yield (
            f"Longer trials ({longer}) decide sooner than more of them: they show whether stalls "
            "recur, and where a drift leads."
        )


def _open_rows(verdict: Verdict) -> list[CellRow]:
    rivals = verdict.related(Relation.OPEN, Relation.UNKNOWN)
    return [
        verdict.row(cell_id)
        for cell_id in (verdict.recommended or "", *(rival.cell_id for rival in rivals))
    ]


def _rows_of_unknown_hazard(verdict: Verdict) -> list[CellRow]:
    """Rows whose unknown failure rate matters for the comparison with the first."""
    best, *others = _open_rows(verdict)
    rows: dict[str, CellRow] = {}
    for other in others:
        # cells on the same capacity are compared at equal rates
        is_same = (
            best.hosts.hazard
            and other.hosts.hazard
            and best.hosts.hazard.key == other.hosts.hazard.key
        )
        width = 0.0 if is_same else best.hosts.hazard_width + other.hosts.hazard_width
        if expm1(min(1.0, width)) > verdict.tolerance:
            rows |= {row.cell_id: row for row in (best, other) if row.hosts.hazard_width}
    return list(rows.values())


def none_near(verdict: Verdict) -> str | None:
    """Why a race compared no other cell; None if it has dropped and outpaced none."""
    has_ended = any(row.outpaced and not row.trials for row in verdict.rows)
    if not (verdict.dropped or has_ended):
        return None
    if verdict.dropped and not _left_behind(verdict):
        return "only it was measured again, and trials of the others failed"
    completed = " that completed" if any(row.failed for row in verdict.rows) else ""
    nearer = share_text(verdict.scatter.nearer, digits=0)
    return f"every other cell{completed} was more than {nearer} {_worse(verdict)}"


def _worse(verdict: Verdict) -> str:
    return "slower" if verdict.metric.is_time else "dearer"


def _left_behind(verdict: Verdict) -> list[float]:
    """By which shares the cells are behind that a race dropped after one run, as the table shows
    them, sorted.
    """
    failed = {row.cell_id for row in verdict.rows if row.failed}
    return sorted(1 / ratio - 1 for name, ratio in verdict.dropped.items() if name not in failed)


def describe_search(verdict: Verdict) -> Iterator[str]:
    behind = _left_behind(verdict)
    if behind:
        scatter = verdict.scatter.share
        by = share_text(scatter, digits=0 if scatter >= 0.01 else 1)
        runs = "its one run" if len(behind) == 1 else "one run each"
        measured = f"measured {_ends(behind)} {_worse(verdict)} than the recommended cell"
        yield (
            f"{_cells(behind)} dropped: in {runs}, {measured} (single runs scatter by about {by})."
        )
    least = sorted(
        row.least_behind for row in verdict.rows if not row.trials and row.least_behind is not None
    )
    if least:
        runs = "its run was" if len(least) == 1 else "their runs were"
        yield (
            f"{_cells(least)} outpaced: {runs} at least {_ends(least)} slower than another run of "
            "the job."
        )


def _cells(behind: Sequence[float]) -> str:
    return "1 cell was" if len(behind) == 1 else f"{len(behind)} cells were"


def _ends(behind: Sequence[float]) -> str:
    return (
        " to ".join(dict.fromkeys(f"{100 * share:.0f}" for share in (behind[0], behind[-1]))) + " %"
    )
