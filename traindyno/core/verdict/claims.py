"""Judge published figures: against their own arithmetic, and against what a suite measured."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import inf

from traindyno.core.costs.quantity_text import number_text
from traindyno.core.documents.stored import JsonScalar
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.statistics.estimates import Interval, compare, estimate
from traindyno.core.suite.claim import Claim, ClaimedBound, ClaimedForm, ClaimedQuantity, Claims
from traindyno.core.verdict.cell_trials import CellTrials
from traindyno.core.verdict.claim_arithmetic import WorkedDerivation, accepted, work_out
from traindyno.core.verdict.claimed_cells import matches
from traindyno.core.verdict.played_claims import played_claims
from traindyno.core.verdict.quantity import (
    Quantity,
    last_accuracy,
    projected_billable_seconds,
    projected_instance_hours,
    projected_seconds,
    projected_usd,
    samples_per_second,
    steps_per_second,
    tokens_per_second,
    training_seconds,
)

CLAIMED_QUANTITIES: dict[ClaimedQuantity, Quantity] = {
    ClaimedQuantity.SAMPLES_PER_SECOND: samples_per_second,
    ClaimedQuantity.TOKENS_PER_SECOND: tokens_per_second,
    ClaimedQuantity.STEPS_PER_SECOND: steps_per_second,
    ClaimedQuantity.SECONDS: projected_seconds,
    ClaimedQuantity.TRAINING_SECONDS: training_seconds,
    ClaimedQuantity.BILLABLE_SECONDS: projected_billable_seconds,
    ClaimedQuantity.USD: projected_usd,
    ClaimedQuantity.INSTANCE_HOURS: projected_instance_hours,
    ClaimedQuantity.ACCURACY: last_accuracy,
}

PLAYED = "the simulated runs were given this figure, or those that it follows from"


class ClaimFinding(StrEnum):
    """Played: within the tolerance, in simulated runs that were given this figure or those that it follows from.
    Undecided: the measured interval extends beyond the tolerance, and more trials would decide. Ambiguous: several
    cells of the suite match the claim. No cell: none matches.
    """

    REPRODUCED = "reproduced"
    PLAYED = "played"
    NOT_REPRODUCED = "not_reproduced"
    UNDECIDED = "undecided"
    INCONSISTENT = "internally_inconsistent"
    NOT_TESTABLE = "not_testable"
    NOT_MEASURED = "not_measured"
    AMBIGUOUS = "ambiguous"
    NO_CELL = "no_cell"


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredFigure:
    """``interval`` is None if a cell has one trial."""

    value: float
    interval: Interval | None
    trials: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimJudgement:
    """``is_consistent`` is None if the claim has no arithmetic to check."""

    claim: Claim
    finding: ClaimFinding
    worked: tuple[WorkedDerivation, ...]
    measured: MeasuredFigure | None
    reason: str

    @property
    def is_consistent(self) -> bool | None:
        return all(worked.is_consistent for worked in self.worked) if self.worked else None


def judge_claims(
    claims: Claims, trials: Sequence[CellTrials], results: Sequence[RunResult]
) -> tuple[ClaimJudgement, ...]:
    """``trials`` are those of the ``results``. Checks only the arithmetic if there are none."""
    played = played_claims(claims.claims, [each.cell for each in trials], results)
    return tuple(_judge(claim, trials, is_played=claim.claim_id in played) for claim in claims.claims)


def _judge(claim: Claim, trials: Sequence[CellTrials], *, is_played: bool) -> ClaimJudgement:
    worked = tuple(work_out(claim, derivation) for derivation in claim.derivations)
    unclear = _unclear_match(claim, trials)
    measured = None if unclear else _measure(claim, trials)
    contradiction = _contradiction(claim, worked)
    if contradiction and (measured is None or _is_beyond_tolerance(claim, worked)):
        finding, reason = ClaimFinding.INCONSISTENT, contradiction
    elif measured is not None:
        finding, compared = _find_measured(claim, measured, is_played=is_played)
        reason = "; ".join(filter(None, (compared, contradiction)))
    elif claim.untestable:
        finding, reason = ClaimFinding.NOT_TESTABLE, claim.untestable
    else:
        finding, reason = unclear or (ClaimFinding.NOT_MEASURED, "no completed trial of the cells of this claim")
    return ClaimJudgement(claim=claim, finding=finding, worked=worked, measured=measured, reason=reason)


def _contradiction(claim: Claim, worked: Sequence[WorkedDerivation]) -> str | None:
    wrong = next((each for each in worked if not each.is_consistent), None)
    if wrong is None:
        return None
    against = f"; contradicts {', '.join(wrong.from_claims)}" if wrong.from_claims else ""
    published = f"published {_bound_text(claim.bound)}{number_text(claim.published, digits=5)}"
    return f"{published}, but {wrong.text}{against}"


def _is_beyond_tolerance(claim: Claim, worked: Sequence[WorkedDerivation]) -> bool:
    """No measurement can agree with both the figure and the author's other numbers."""
    low, high = accepted(claim)
    return not all(each.is_consistent or low <= each.value <= high for each in worked)


def _find_measured(claim: Claim, measured: MeasuredFigure, *, is_played: bool) -> tuple[ClaimFinding, str]:
    low, high = accepted(claim)
    reach = measured.interval
    text = (
        f"measured {number_text(measured.value)}"
        f"{f' ({number_text(reach.low)} to {number_text(reach.high)})' if reach else ', one trial'},"
        f" accepted {_accepted_text(low, high)}"
    )
    if reach is None:
        return ClaimFinding.UNDECIDED, text
    if low <= reach.low and reach.high <= high:
        return (ClaimFinding.PLAYED, f"{text}; {PLAYED}") if is_played else (ClaimFinding.REPRODUCED, text)
    return (ClaimFinding.NOT_REPRODUCED if reach.high < low or reach.low > high else ClaimFinding.UNDECIDED), text


def _unclear_match(claim: Claim, trials: Sequence[CellTrials]) -> tuple[ClaimFinding, str] | None:
    """Why a side of the claim does not match exactly one cell of the suite; None if each does, or without cells."""
    wanted = [claim.cell] if claim.form is ClaimedForm.VALUE else [claim.cell, claim.against]
    for side in wanted if trials else ():
        matching = [each.cell for each in trials if matches(each.cell, side)]
        named = ", ".join(f"{name}: {value}" for name, value in side.items())
        if not matching:
            return ClaimFinding.NO_CELL, f"no cell of the suite matches {{{named}}}"
        if len(matching) > 1:
            labels = "; ".join(cell.label for cell in matching)
            return ClaimFinding.AMBIGUOUS, f"{{{named}}} matches {len(matching)} cells of different settings: {labels}"
    return None


def _accepted_text(low: float, high: float) -> str:
    if low == -inf:
        return f"{number_text(high)} and less"
    return f"{number_text(low)} and more" if high == inf else f"{number_text(low)} to {number_text(high)}"


def _bound_text(bound: ClaimedBound) -> str:
    return {ClaimedBound.AT_MOST: "at most ", ClaimedBound.AT_LEAST: "at least "}.get(bound, "")


def _measure(claim: Claim, trials: Sequence[CellTrials]) -> MeasuredFigure | None:
    quantity = CLAIMED_QUANTITIES.get(claim.quantity)
    if quantity is None:
        return None
    own = _values(trials, claim.cell, quantity)
    if not own:
        return None
    if claim.form is ClaimedForm.VALUE:
        found = estimate(own)
        return MeasuredFigure(value=found.mean, interval=found.interval, trials=found.count)
    other = _values(trials, claim.against, quantity)
    if not other:
        return None
    compared = compare(own, other)
    scale = _instances(trials, claim.against) / _instances(trials, claim.cell)
    interval = compared.interval
    return MeasuredFigure(
        value=_shape(claim.form, compared.ratio, scale),
        interval=_shape_interval(claim.form, interval, scale) if interval else None,
        trials=min(len(own), len(other)),
    )


def _shape(form: ClaimedForm, ratio: float, scale: float) -> float:
    match form:
        case ClaimedForm.VALUE | ClaimedForm.RATIO:
            return ratio
        case ClaimedForm.GAIN:
            return ratio - 1
        case ClaimedForm.SAVING:
            return 1 - ratio
        case ClaimedForm.SCALING_EFFICIENCY:
            return ratio * scale


def _shape_interval(form: ClaimedForm, interval: Interval, scale: float) -> Interval:
    ends = sorted((_shape(form, interval.low, scale), _shape(form, interval.high, scale)))
    return Interval(low=ends[0], high=ends[1], confidence=interval.confidence)


def _values(trials: Sequence[CellTrials], wanted: Mapping[str, JsonScalar], quantity: Quantity) -> list[float]:
    return [value for each in trials if matches(each.cell, wanted) for value in each.values(quantity)]


def _instances(trials: Sequence[CellTrials], wanted: Mapping[str, JsonScalar]) -> float:
    counts = [each.cell.settings.instance_count for each in trials if matches(each.cell, wanted)]
    return min(counts, default=inf)
