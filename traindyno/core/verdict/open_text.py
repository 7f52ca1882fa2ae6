"""What the trials leave open where it makes the answer open, and what would settle it."""

from collections.abc import Iterator
from math import expm1

from traindyno.core.statistics.selection import Relation
from traindyno.core.verdict.cell_row import CellRow
from traindyno.core.verdict.reason_text import reasons_of_labels
from traindyno.core.verdict.verdict import Finding, Verdict

_MOST_NAMED = 3


def open_reasons_text(verdict: Verdict) -> str:
    """Open reasons of the recommended cell and of cells that may be as good."""
    rows = _open_rows(verdict)
    found = [(row.label, reason) for row in rows for reason in row.undecided_reasons]
    found += [(row.label, _hazard_reason(row)) for row in _rows_of_unknown_hazard(verdict)]
    found += [(row.label, "faults of the service may be its own") for row in _rows_with_faults(verdict)]
    texts = reasons_of_labels(found)
    return f": {'; '.join(texts[:_MOST_NAMED])}" if texts else ""


def describe_open(verdict: Verdict) -> Iterator[str]:
    """What a person can do."""
    if verdict.finding is not Finding.UNDECIDED:
        return
    if verdict.is_without_interruptions:
        yield (
            "With checkpoints more often (workload.full_run.checkpoint_every_minutes), or on capacity that fails less,"
            " runs end."
        )
        return
    if not verdict.needs_longer_trials:
        return
    hazards, faults = _rows_of_unknown_hazard(verdict), _rows_with_faults(verdict)
    if not (hazards or faults) or any(row.undecided_reasons for row in _open_rows(verdict)):
        yield (
            "Longer trials (measurement.max_steps) decide sooner than more of them: they show whether stalls recur,"
            " and where a drift leads."
        )
    if hazards:
        instances = " and ".join(dict.fromkeys(row.instance for row in hazards))
        yield (
            f"More hours of measurement on {instances} show how often its capacity fails, and checkpoints more often"
            " (workload.full_run.checkpoint_every_minutes) make each interruption cost less."
        )
    if faults:
        labels = " and ".join(row.label for row in faults)
        yield f"More trials show whether the faults of the service that hit {labels} are its own."


def _open_rows(verdict: Verdict) -> list[CellRow]:
    rivals = verdict.related(Relation.OPEN, Relation.UNKNOWN)
    return [verdict.row(cell_id) for cell_id in (verdict.recommended or "", *(rival.cell_id for rival in rivals))]


def _rows_with_faults(verdict: Verdict) -> list[CellRow]:
    return [row for row in _open_rows(verdict) if row.uneven_faults is not None]


def _rows_of_unknown_hazard(verdict: Verdict) -> list[CellRow]:
    """Rows whose unknown failure rate matters for the comparison with the first."""
    best, *others = _open_rows(verdict)
    found: dict[str, CellRow] = {}
    for other in others:
        if expm1(min(1.0, _width_between(best, other))) > verdict.tolerance:
            found |= {row.cell_id: row for row in (best, other) if row.hazard_width}
    return list(found.values())


def _width_between(first: CellRow, second: CellRow) -> float:
    """Cells with the same hazard are compared at equal hazard rates."""
    if first.hazard and second.hazard and first.hazard.key == second.hazard.key:
        return abs(first.hazard_width - second.hazard_width)
    return first.hazard_width + second.hazard_width


def _hazard_reason(row: CellRow) -> str:
    hazard = row.hazard
    assert hazard is not None
    return f"{hazard.low:.1g} to {hazard.high:.2g} interruptions per instance-hour are possible"
