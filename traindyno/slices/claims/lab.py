"""Judge published figures against what a suite measured; their section of the report."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import inf

from traindyno.core.costs.quantity_text import number_text
from traindyno.core.documents.stored import JsonScalar
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.suite.cells import Cell
from traindyno.core.suite.choices import Quality
from traindyno.core.suite.suite_file import cell_values, parse_section
from traindyno.core.verdict.cell_runs import CellRuns, group_runs
from traindyno.core.verdict.comparison import ExecutionRecord
from traindyno.core.verdict.figure_table import values_of
from traindyno.core.verdict.report_data import Report
from traindyno.figures.estimates import Estimate, Interval, compare, estimate
from traindyno.figures.table import FigureColumn
from traindyno.report.markup import Markup, columns, draw_table, element, estimate_cell, join
from traindyno.slices.claims.suite import (
    Claim,
    ClaimedBound,
    ClaimedForm,
    ClaimedQuantity,
    Claims,
    ClaimsSection,
    parse_claims,
)

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

    @property
    def tone(self) -> str:
        """The class of its colour in a report; empty where it has none."""
        if self is ClaimFinding.REPRODUCED:
            return "good"
        is_bad = self in (ClaimFinding.NOT_REPRODUCED, ClaimFinding.INCONSISTENT)
        return "bad" if is_bad else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimJudgement:
    claim: Claim
    finding: ClaimFinding
    measured: Estimate | None
    reason: str


def claims_of(record: ExecutionRecord) -> tuple[ClaimJudgement, ...]:
    claims = parse_section(record.suite.features, ClaimsSection).claims
    if claims is None:
        return ()
    return judge_claims(
        parse_claims(claims),
        group_runs(record.suite, record.cells, record.results),
        record.results,
    )


def judge_claims(
    claims: Claims, cells: Sequence[CellRuns], results: Sequence[RunResult]
) -> tuple[ClaimJudgement, ...]:
    """Judge each claim against the runs of the cells that it names.

    ``cells`` have the ``results``. Without any, only contradictions between figures are found.
    """
    is_simulated = any(result.is_simulated for result in results)
    return tuple(_judge(claim, cells, is_simulated=is_simulated) for claim in claims.claims)


def _judge(claim: Claim, cells: Sequence[CellRuns], *, is_simulated: bool) -> ClaimJudgement:
    unclear = _unclear_match(claim, cells)
    measured = None if unclear else _measure(claim, cells)
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


def _unclear_match(claim: Claim, cells: Sequence[CellRuns]) -> tuple[ClaimFinding, str] | None:
    """Why a side of the claim does not match exactly one cell of the suite; None if each does, or
    without cells.
    """
    wanted = [claim.cell] if claim.form is ClaimedForm.VALUE else [claim.cell, claim.against]
    for side in wanted if cells else ():
        matching = [runs.cell for runs in cells if matches(runs.cell, side)]
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


def _measure(claim: Claim, cells: Sequence[CellRuns]) -> Estimate | None:
    own = [runs for runs in cells if matches(runs.cell, claim.cell)]
    values = _values(own, claim.quantity)
    if not values:
        return None
    if claim.form is ClaimedForm.VALUE:
        return estimate(values)
    against = [runs for runs in cells if matches(runs.cell, claim.against)]
    others = _values(against, claim.quantity)
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


def _values(cells: Sequence[CellRuns], quantity: ClaimedQuantity) -> list[float]:
    """The quantity's values in measured trials, where they are known and above 0."""
    values = (_value(result, quantity) for runs in cells for result in runs.measured)
    return [value for value in values if value is not None and value > 0]


def _value(result: RunResult, quantity: ClaimedQuantity) -> float | None:
    """Seconds of training are those at the measured rate, without starting and compiling."""
    match quantity:
        case ClaimedQuantity.SETTING:
            return None
        case ClaimedQuantity.ACCURACY:
            return result.last_value(Quality.ACCURACY)
        case ClaimedQuantity.TRAINING_SECONDS:
            rate = result.samples_per_second
            return result.examples / rate if rate else None
        case _:
            return values_of(result).get(FigureColumn(quantity.value))


def matches(cell: Cell, wanted: Mapping[str, JsonScalar]) -> bool:
    values = cell_values(cell)
    return all(values.get(name) == value for name, value in wanted.items())


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
            class_=f"outcome {judgement.finding.tone}",
        ),
        join(judgement.reason, element("small", claim.notes) if claim.notes else None),
    ]
