"""The figures of a cell: one list, which the report and the terminal draw as the columns of their
tables.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from functools import partial
from typing import Any

from traindyno.core.costs.quantity_text import (
    UNKNOWN,
    bytes_text,
    number_text,
    range_text,
    seconds_text,
    share_text,
    usd_text,
)
from traindyno.core.jobs.outcome import outcome_text
from traindyno.core.jobs.run_end import NONE_FITS
from traindyno.core.verdict.cell_row import CellQuality, CellRow
from traindyno.core.verdict.found_batch import CellBatch
from traindyno.core.verdict.trained_weights import CellWeights
from traindyno.core.verdict.verdict import Verdict
from traindyno.figures.estimates import Estimate, Interval

PREDICTION = "90 % prediction interval for one future run of the whole workload"
FigureValue = Estimate | Interval | Mapping[str, int] | Decimal | float | str | None


class InTerminal(StrEnum):
    """When the terminal's table has a column for a figure: never, if a cell has it, or always."""

    NEVER = "never"
    IF_KNOWN = "if-known"
    ALWAYS = "always"


def _text_or_unknown(value: object) -> str:
    return UNKNOWN if value is None else str(value)


@dataclass(frozen=True, slots=True)
class CellFigure:
    """One figure of a cell, as a column of the tables.

    ``value`` is None where it is unknown; ``text`` writes the numbers of an estimate or an interval
    too. ``is_known`` says whether the cell makes the figure worth a column: by default, if its
    value is not None. A figure that ``is_optional`` is not mentioned where no cell has it.
    """

    heading: str
    value: Callable[[CellRow], FigureValue]
    text: Callable[[Any], str] = _text_or_unknown
    explanation: str | None = None
    is_known: Callable[[CellRow], bool] | None = None
    is_optional: bool = False
    in_terminal: InTerminal = InTerminal.NEVER

    def is_known_of(self, rows: Sequence[CellRow]) -> bool:
        return any(
            self.is_known(row) if self.is_known else self.value(row) is not None for row in rows
        )

    def plain_text(self, value: FigureValue) -> str:
        """The text of a value that is neither an estimate nor outcomes."""
        if isinstance(value, Interval):
            return range_text(self.text(value.low), self.text(value.high))
        return self.text(value)


def outcomes_text(outcomes: Mapping[str, int]) -> str:
    """How the cell's trials ended."""
    return (
        ", ".join(f"{count} {outcome_text(outcome)}" for outcome, count in outcomes.items())
        or "not run"
    )


def found_batch_text(row: CellRow) -> int | str | None:
    batch = row.part(CellBatch)
    if batch.found == NONE_FITS:
        return "none fits"
    return f"{batch.found} or more" if batch.larger_may_fit else batch.found


_optional = partial(CellFigure, is_optional=True, in_terminal=InTerminal.IF_KNOWN)
_known = partial(CellFigure, in_terminal=InTerminal.IF_KNOWN)
_always = partial(CellFigure, in_terminal=InTerminal.ALWAYS)

CELL_FIGURES = (
    _optional(
        "Reached",
        lambda row: f"{row.part(CellQuality).reached or 0} of {row.trials}",
        explanation="trials that reached the goal's target, of those measured",
        is_known=lambda row: row.part(CellQuality).reached is not None,
    ),
    _optional(
        "Time to target",
        lambda row: row.part(CellQuality).seconds,
        seconds_text,
        "from the job's creation to the first such evaluation",
        is_known=lambda row: row.part(CellQuality).reached is not None,
    ),
    _optional(
        "Cost to target",
        lambda row: row.part(CellQuality).usd,
        usd_text,
        "what was billed until that evaluation",
    ),
    _always("Trials", lambda row: row.outcomes, explanation="measured, of all that ended"),
    _always("Samples/s", lambda row: row.samples_per_second, number_text),
    CellFigure("Tokens/s", lambda row: row.tokens_per_second, number_text),
    CellFigure(
        "Steps/s",
        lambda row: row.steps_per_second,
        number_text,
        "iterations; a step is one of the optimizer",
    ),
    CellFigure(
        "CV",
        lambda row: row.samples_per_second.variation if row.samples_per_second else None,
        share_text,
        "standard deviation of the trials' rates ÷ their mean",
    ),
    _known(
        "Time of one run, 90 %",
        lambda row: row.prediction.seconds if row.prediction else None,
        seconds_text,
        PREDICTION,
    ),
    _always("Time", lambda row: row.seconds, seconds_text),
    _known(
        "Before training",
        lambda row: row.time.before_training_seconds,
        seconds_text,
        "part of the time: waiting for capacity, starting and downloading",
    ),
    CellFigure(
        "Billed time",
        lambda row: row.billable_seconds,
        seconds_text,
        "seconds of each instance that SageMaker bills",
    ),
    CellFigure("Price per hour", lambda row: row.usd_per_hour, usd_text, "of all instances"),
    CellFigure(
        "Cost of one run, 90 %",
        lambda row: row.prediction.usd if row.prediction else None,
        usd_text,
        PREDICTION,
    ),
    _always("Cost", lambda row: row.usd, usd_text),
    CellFigure(
        "Billed share",
        lambda row: row.time.billable_share,
        share_text,
        "billable ÷ training time; below 100 % with spot",
        is_known=lambda row: row.time.billable_share is not None and row.time.billable_share < 1,
        is_optional=True,
    ),
    _optional(
        "Outpaced",
        lambda row: row.least_behind,
        lambda share: "no" if share is None else share_text(share),
        "slower by at least so much than a run of its job, which ended it",
    ),
    _optional(
        "Recurring",
        lambda row: row.time.recurring_share,
        share_text,
        "share of step time: checkpoints, evaluation, stalls",
        is_known=lambda row: bool(row.time.recurring_share),
    ),
    _known(
        "Accuracy",
        lambda row: row.part(CellQuality).accuracy,
        share_text,
        "of the last evaluation, mean of the trials",
    ),
    _optional(
        "Evaluation loss",
        lambda row: row.part(CellQuality).loss,
        number_text,
        "of the last evaluation",
    ),
    _optional(
        "Perplexity",
        lambda row: row.part(CellQuality).perplexity,
        number_text,
        "of the last evaluation",
    ),
    CellFigure(
        "MFU", lambda row: row.time.model_flops_utilization, share_text, "model FLOPs utilization"
    ),
    _always(
        "Data wait",
        lambda row: row.time.data_wait_share,
        share_text,
        "share of time spent waiting for data",
    ),
    _optional(
        "Trained",
        lambda row: row.part(CellWeights).parameters and str(row.part(CellWeights)),
        explanation="parameters that train, and their learning rate",
        is_known=lambda row: row.part(CellWeights).trained is not None,
    ),
    _optional("Batch found", found_batch_text, explanation="per device, by the probes of the cell"),
    CellFigure(
        "Memory",
        lambda row: row.part(CellBatch).peak_memory_bytes,
        bytes_text,
        "peak of one device, the highest of all ranks",
    ),
    CellFigure(
        "Waited",
        lambda row: row.time.waiting_seconds,
        seconds_text,
        "mean time of waiting for capacity",
    ),
)


def find_trade_offs(verdict: Verdict) -> list[tuple[CellRow, Estimate, Estimate]]:
    """The cells that no other beats in both time and cost, which follow, the fastest first; no
    refused cell.
    """
    is_whole = verdict.goal.target is None
    known: list[tuple[CellRow, Estimate, Estimate]] = []
    for row in verdict.ranked_rows:
        figures: CellRow | CellQuality = row if is_whole else row.part(CellQuality)
        # one run of a dropped cell may be ahead of the recommended cell's mean
        if row.cell_id in verdict.refused or verdict.dropped.get(row.cell_id, 0.0) > 1:
            continue
        if figures.seconds is not None and figures.usd is not None:
            known.append((row, figures.seconds, figures.usd))
    front: list[tuple[CellRow, Estimate, Estimate]] = []
    for point in sorted(known, key=lambda point: (point[1].mean, point[2].mean)):
        if not front or point[2].mean < front[-1][2].mean:
            front.append(point)
    return front
