"""Judge published figures against what a suite measured; their section of the report."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from math import inf

from traindyno.core.costs.quantity_text import number_text
from traindyno.core.documents.stored import JsonScalar
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.suite.cells import Cell
from traindyno.core.suite.choices import Quality
from traindyno.core.suite.suite_file import cell_values
from traindyno.core.verdict.cell_trials import CellTrials, suite_trials
from traindyno.core.verdict.comparison import ExecutionRecord
from traindyno.core.verdict.quantity import (
    Quantity,
    last_value,
    projected_billable_seconds,
    projected_instance_hours,
    projected_seconds,
    projected_usd,
    samples_per_second,
    steps_per_second,
    tokens_per_second,
    training_seconds,
)
from traindyno.core.verdict.report_data import Report
from traindyno.figures.estimates import Estimate, Interval, compare, estimate
from traindyno.report.markup import Markup, columns, draw_table, element, estimate_cell, join
from traindyno.slices.claims.suite import (
    Claim,
    ClaimedBound,
    ClaimedForm,
    ClaimedQuantity,
    Claims,
    parse_claims,
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
    ClaimedQuantity.ACCURACY: partial(last_value, quality=Quality.ACCURACY),
}

PLAYED = "the runs are simulated and play the figures that their traces were given"
SHAPES: dict[ClaimedForm, Callable[[float, float], float]] = {
    ClaimedForm.RATIO: lambda ratio, instances: ratio,
    ClaimedForm.GAIN: lambda ratio, instances: ratio - 1,
    ClaimedForm.SAVING: lambda ratio, instances: 1 - ratio,
    ClaimedForm.SCALING_EFFICIENCY: lambda ratio, instances: ratio / instances,
}
BOUNDS = {
    ClaimedBound.EXACTLY: "",
    ClaimedBound.AT_MOST: "at most ",
    ClaimedBound.AT_LEAST: "at least ",
}

PART = "claims"
COLUMNS = columns("Claim", "# Published", "# Measured", "Finding", "Why")


class ClaimFinding(StrEnum):
    """Played: within the tolerance, in simulated runs.

    Inconsistent: the claim has a contradiction that is larger than its tolerance, or that no
    measurement decides. Undecided: the measured interval extends beyond the tolerance. Ambiguous:
    several cells of the suite match the claim. No cell: none matches.
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
class ClaimJudgement:
    claim: Claim
    finding: ClaimFinding
    measured: Estimate | None
    reason: str


def claims_of(record: ExecutionRecord) -> tuple[ClaimJudgement, ...]:
    if record.suite.claims is None:
        return ()
    return judge_claims(
        parse_claims(record.suite.claims),
        suite_trials(record.suite, record.cells, record.results),
        record.results,
    )


def judge_claims(
    claims: Claims, trials: Sequence[CellTrials], results: Sequence[RunResult]
) -> tuple[ClaimJudgement, ...]:
    """``trials`` are those of the ``results``; without any, only contradictions are found."""
    is_simulated = any(result.is_simulated for result in results)
    return tuple(_judge(claim, trials, is_simulated=is_simulated) for claim in claims.claims)


def _judge(claim: Claim, trials: Sequence[CellTrials], *, is_simulated: bool) -> ClaimJudgement:
    unclear = _unclear_match(claim, trials)
    measured = None if unclear else _measure(claim, trials)
    margin = abs(claim.published) * claim.tolerance
    low = -inf if claim.bound is ClaimedBound.AT_MOST else claim.published - margin
    high = inf if claim.bound is ClaimedBound.AT_LEAST else claim.published + margin
    other = claim.contradiction
    contradiction = (
        f"published {BOUNDS[claim.bound]}{number_text(claim.published, digits=5)}, but {other.text}"
        if other
        else ""
    )
    if other and (measured is None or not low <= other.value <= high):
        finding = ClaimFinding.INCONSISTENT
        reason = contradiction
    elif measured is not None:
        finding, compared = _find_measured(measured, low, high, is_simulated=is_simulated)
        reason = "; ".join(filter(None, (compared, contradiction)))
    elif claim.untestable:
        finding = ClaimFinding.NOT_TESTABLE
        reason = claim.untestable
    else:
        finding, reason = unclear or (
            ClaimFinding.NOT_MEASURED,
            "no completed trial of the cells of this claim",
        )
    return ClaimJudgement(claim=claim, finding=finding, measured=measured, reason=reason)


def _find_measured(
    measured: Estimate, low: float, high: float, *, is_simulated: bool
) -> tuple[ClaimFinding, str]:
    reach = measured.interval
    ends = [number_text(end) for end in (low, high) if abs(end) < inf]
    accepted = (
        " to ".join(ends) if len(ends) > 1 else f"{ends[0]} and {'less' if low == -inf else 'more'}"
    )
    spread = f" ({number_text(reach.low)} to {number_text(reach.high)})" if reach else ", one trial"
    text = f"measured {number_text(measured.mean)}{spread}, accepted {accepted}"
    if reach is None:
        return ClaimFinding.UNDECIDED, text
    if low <= reach.low and reach.high <= high:
        return (
            (ClaimFinding.PLAYED, f"{text}; {PLAYED}")
            if is_simulated
            else (ClaimFinding.REPRODUCED, text)
        )
    return (
        ClaimFinding.NOT_REPRODUCED
        if reach.high < low or reach.low > high
        else ClaimFinding.UNDECIDED
    ), text


def _unclear_match(claim: Claim, trials: Sequence[CellTrials]) -> tuple[ClaimFinding, str] | None:
    """Why a side of the claim does not match exactly one cell of the suite; None if each does, or
    without cells.
    """
    wanted = [claim.cell] if claim.form is ClaimedForm.VALUE else [claim.cell, claim.against]
    for side in wanted if trials else ():
        matching = [each.cell for each in trials if matches(each.cell, side)]
        named = ", ".join(f"{name}: {value}" for name, value in side.items())
        if not matching:
            return ClaimFinding.NO_CELL, f"no cell of the suite matches {{{named}}}"
        if len(matching) > 1:
            labels = "; ".join(cell.label for cell in matching)
            return (
                ClaimFinding.AMBIGUOUS,
                f"{{{named}}} matches {len(matching)} cells of different settings: {labels}",
            )
    return None


def _measure(claim: Claim, trials: Sequence[CellTrials]) -> Estimate | None:
    quantity = CLAIMED_QUANTITIES.get(claim.quantity)
    own = [each for each in trials if matches(each.cell, claim.cell)]
    values = [value for each in own for value in each.values(quantity)] if quantity else []
    if quantity is None or not values:
        return None
    if claim.form is ClaimedForm.VALUE:
        return estimate(values)
    against = [each for each in trials if matches(each.cell, claim.against)]
    others = [value for each in against for value in each.values(quantity)]
    if not others:
        return None
    compared = compare(values, others)
    shape = SHAPES[claim.form]
    instances = own[0].cell.settings.instance_count / against[0].cell.settings.instance_count
    interval = compared.interval
    if interval:
        low, high = sorted(shape(end, instances) for end in (interval.low, interval.high))
        interval = Interval(low=low, high=high, confidence=interval.confidence)
    count = min(len(values), len(others))
    mean = shape(compared.ratio, instances)
    return Estimate(mean=mean, count=count, variation=None, interval=interval)


def matches(cell: Cell, wanted: Mapping[str, JsonScalar]) -> bool:
    values = cell_values(cell)
    return all(values.get(name) == value for name, value in wanted.items())


TONES = {
    ClaimFinding.REPRODUCED: "good",
    ClaimFinding.NOT_REPRODUCED: "bad",
    ClaimFinding.INCONSISTENT: "bad",
}


def draw_claims(report: Report) -> Markup | None:
    judgements = report.part(PART, ClaimJudgement)
    if not judgements:
        return None
    return element(
        "section",
        element("h2", "Published claims"),
        draw_table(
            COLUMNS,
            [_row(judgement) for judgement in judgements],
            caption="Figures that this suite checks.",
        ),
        id="claims",
    )


def _row(judgement: ClaimJudgement) -> list[str | None]:
    claim = judgement.claim
    return [
        join(claim.text, element("small", claim.source)),
        number_text(claim.published, digits=4),
        estimate_cell(judgement.measured, number_text),
        element(
            "span",
            judgement.finding.value.replace("_", " "),
            class_=f"outcome {TONES.get(judgement.finding, '')}",
        ),
        join(judgement.reason, element("small", claim.notes) if claim.notes else None),
    ]
