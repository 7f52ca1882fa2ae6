"""What the trials leave open, what would settle it, and which cells a race dropped, in sentences."""

import re
from collections.abc import Iterable, Iterator, Sequence
from math import expm1

from traindyno.core.costs.quantity_text import share_text
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.search.race import within_of
from traindyno.core.statistics.selection import Relation
from traindyno.core.verdict.cell_row import CellRow
from traindyno.core.verdict.verdict import Finding, Verdict

_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_NUMBERS = re.compile(r"#(?:, #)*(?:, …)?")


def merge_reasons(reasons: Iterable[str]) -> list[str]:
    """One text for reasons that differ in their numbers only: the one with the largest last number, and of how many."""
    kinds: dict[str, list[str]] = {}
    for reason in dict.fromkeys(reasons):
        kinds.setdefault(_NUMBERS.sub("#", _NUMBER.sub("#", reason)), []).append(reason)
    return [_largest(alike) for alike in kinds.values()]


def _largest(alike: Sequence[str]) -> str:
    if len(alike) == 1:
        return alike[0]
    return f"{max(alike, key=_last_number)} (the largest of {len(alike)})"


def _last_number(reason: str) -> float:
    return float(_NUMBER.findall(reason)[-1])


def reasons_of_labels(found: Iterable[tuple[str, str]]) -> list[str]:
    """Pairs of a label and a reason: "of A and of B, reason", with the labels of each reason."""
    labels: dict[str, list[str]] = {}
    for label, reason in found:
        labels.setdefault(reason, []).append(f"of {label}")
    return [f"{' and '.join(named)}, {reason}" for reason, named in labels.items()]


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
        best = next((row.seconds for row in verdict.rows if row.cell_id == verdict.recommended), None)
        ended = (row.seconds for row in verdict.rows if Outcome.OUTPACED.value in row.outcomes and not row.failed)
        near = min((each.mean / best.mean - 1 for each in ended if each and best), default=within)
        if near < within:
            return f"a run of a cell {share_text(max(near, 0.0))} behind was ended as too slow; run the suite again"
        return f"no other cell was within {share_text(within, digits=0)} of it"
    return None


def describe_search(verdict: Verdict) -> Iterator[str]:
    behind = left_behind(verdict)
    if behind:
        cells = "1 cell was" if len(behind) == 1 else f"{len(behind)} cells were"
        reach = share_text(behind[0]) if len(behind) == 1 else f"{share_text(behind[0])} to {share_text(behind[-1])}"
        word = "slower" if verdict.metric.is_time else "dearer"
        yield f"{cells} dropped after one run: {reach} {word} than the recommended cell."
