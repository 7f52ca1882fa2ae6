"""The figures of a cell: one list, which the report and the terminal draw as the columns of their tables."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import Any

from traindyno.core.costs.quantity_text import bytes_text, number_text, range_text, seconds_text, share_text, usd_text
from traindyno.core.jobs.run_end import NONE_FITS
from traindyno.core.slowness.step_shares import CellSteps
from traindyno.core.statistics.estimates import Estimate, Interval
from traindyno.core.verdict.cell_quality import CellQuality
from traindyno.core.verdict.cell_row import CellRow
from traindyno.core.verdict.found_batch import CellBatch
from traindyno.core.verdict.verdict import Verdict

PREDICTION = "90 % prediction interval for one future run of the whole workload"
FigureValue = Estimate | Interval | Mapping[str, int] | Decimal | float | str | None


class InTerminal(StrEnum):
    """``IF_KNOWN``: if a cell has the figure. ``ALWAYS``: unknown ones are worth a column too."""

    NEVER = "never"
    IF_KNOWN = "if-known"
    ALWAYS = "always"


@dataclass(frozen=True, slots=True, kw_only=True)
class CellFigure:
    """``value`` of None is unknown; ``text`` writes the numbers of an estimate or an interval too.

    ``is_known``: whether the cell makes the figure worth a column; by default, if its value is not None.
    ``is_optional``: a figure that no cell has is not mentioned.
    """

    heading: str
    value: Callable[[CellRow], FigureValue]
    text: Callable[[Any], str] = str
    explanation: str | None = None
    is_known: Callable[[CellRow], bool] | None = None
    is_optional: bool = False
    in_terminal: InTerminal = InTerminal.NEVER

    def is_known_of(self, rows: Sequence[CellRow]) -> bool:
        return any(self.is_known(row) if self.is_known else self.value(row) is not None for row in rows)

    def plain_text(self, value: FigureValue) -> str:
        """The text of a value that is neither an estimate nor outcomes."""
        if isinstance(value, Interval):
            return range_text(self.text(value.low), self.text(value.high))
        return self.text(value)


def outcomes_text(outcomes: Mapping[str, int]) -> str:
    """How the cell's trials ended."""
    return ", ".join(f"{count} {outcome.replace('_', ' ')}" for outcome, count in outcomes.items()) or "not run"


def found_batch_text(row: CellRow) -> int | str | None:
    batch = row.part(CellBatch)
    if batch.found == NONE_FITS:
        return "none fits"
    return f"{batch.found} or more" if batch.larger_may_fit else batch.found


CELL_FIGURES = (
    CellFigure(
        heading="Reached",
        explanation="trials that reached the goal's target, of those measured",
        value=lambda row: f"{row.part(CellQuality).reached or 0} of {row.trials}",
        is_known=lambda row: row.part(CellQuality).reached is not None,
        is_optional=True,
        in_terminal=InTerminal.IF_KNOWN,
    ),
    CellFigure(
        heading="Time to target",
        explanation="from the job's creation to the first such evaluation",
        value=lambda row: row.part(CellQuality).seconds,
        text=seconds_text,
        is_known=lambda row: row.part(CellQuality).reached is not None,
        is_optional=True,
        in_terminal=InTerminal.IF_KNOWN,
    ),
    CellFigure(
        heading="Cost to target",
        explanation="what was billed until that evaluation",
        value=lambda row: row.part(CellQuality).usd,
        text=usd_text,
        is_optional=True,
        in_terminal=InTerminal.IF_KNOWN,
    ),
    CellFigure(
        heading="Trials",
        explanation="measured, of all that ended",
        value=lambda row: row.outcomes,
        in_terminal=InTerminal.ALWAYS,
    ),
    CellFigure(
        heading="Samples/s", value=lambda row: row.samples_per_second, text=number_text, in_terminal=InTerminal.ALWAYS
    ),
    CellFigure(heading="Tokens/s", value=lambda row: row.tokens_per_second, text=number_text),
    CellFigure(
        heading="Steps/s",
        explanation="iterations; a step is one of the optimizer",
        value=lambda row: row.steps_per_second,
        text=number_text,
    ),
    CellFigure(
        heading="CV",
        explanation="standard deviation of the trials' rates ÷ their mean",
        value=lambda row: row.samples_per_second.variation if row.samples_per_second else None,
        text=share_text,
    ),
    CellFigure(
        heading="Time of one run, 90 %",
        explanation=PREDICTION,
        value=lambda row: row.prediction.seconds if row.prediction else None,
        text=seconds_text,
        in_terminal=InTerminal.IF_KNOWN,
    ),
    CellFigure(heading="Time", value=lambda row: row.seconds, text=seconds_text, in_terminal=InTerminal.ALWAYS),
    CellFigure(
        heading="Before training",
        explanation="part of the time: waiting for capacity, starting and downloading",
        value=lambda row: row.time.before_training_seconds,
        text=seconds_text,
        in_terminal=InTerminal.IF_KNOWN,
    ),
    CellFigure(
        heading="Billed time",
        explanation="seconds of each instance that SageMaker bills",
        value=lambda row: row.billable_seconds,
        text=seconds_text,
    ),
    CellFigure(
        heading="Price per hour", explanation="of all instances", value=lambda row: row.usd_per_hour, text=usd_text
    ),
    CellFigure(
        heading="Cost of one run, 90 %",
        explanation=PREDICTION,
        value=lambda row: row.prediction.usd if row.prediction else None,
        text=usd_text,
    ),
    CellFigure(heading="Cost", value=lambda row: row.usd, text=usd_text, in_terminal=InTerminal.ALWAYS),
    CellFigure(
        heading="Billed share",
        explanation="billable ÷ training time; below 100 % with spot",
        value=lambda row: row.time.billable_share,
        text=share_text,
        is_known=lambda row: row.time.billable_share is not None and row.time.billable_share < 1,
        is_optional=True,
    ),
    CellFigure(
        heading="Outpaced",
        explanation="slower by at least so much than a run of its job, which ended it",
        value=lambda row: row.least_behind,
        text=lambda share: "no" if share is None else share_text(share),
        is_optional=True,
        in_terminal=InTerminal.IF_KNOWN,
    ),
    CellFigure(
        heading="Recurring",
        explanation="share of step time: checkpoints, evaluation, stalls",
        value=lambda row: row.part(CellSteps).recurring_share,
        text=share_text,
        is_known=lambda row: bool(row.part(CellSteps).recurring_share),
        is_optional=True,
        in_terminal=InTerminal.IF_KNOWN,
    ),
    CellFigure(
        heading="Accuracy",
        explanation="of the last evaluation, mean of the trials",
        value=lambda row: row.part(CellQuality).accuracy,
        text=share_text,
        in_terminal=InTerminal.IF_KNOWN,
    ),
    CellFigure(
        heading="Evaluation loss",
        explanation="of the last evaluation",
        value=lambda row: row.part(CellQuality).loss,
        text=number_text,
        is_optional=True,
        in_terminal=InTerminal.IF_KNOWN,
    ),
    CellFigure(
        heading="Perplexity",
        explanation="of the last evaluation",
        value=lambda row: row.part(CellQuality).perplexity,
        text=number_text,
        is_optional=True,
        in_terminal=InTerminal.IF_KNOWN,
    ),
    CellFigure(
        heading="MFU",
        explanation="model FLOPs utilization",
        value=lambda row: row.part(CellSteps).model_flops_utilization,
        text=share_text,
    ),
    CellFigure(
        heading="Data wait",
        explanation="share of time spent waiting for data",
        value=lambda row: row.part(CellSteps).data_wait_share,
        text=share_text,
        in_terminal=InTerminal.ALWAYS,
    ),
    CellFigure(
        heading="Batch found",
        explanation="per device, by the probes of the cell",
        value=found_batch_text,
        is_optional=True,
        in_terminal=InTerminal.IF_KNOWN,
    ),
    CellFigure(
        heading="Memory",
        explanation="peak of one device, the highest of all ranks",
        value=lambda row: row.part(CellBatch).peak_memory_bytes,
        text=bytes_text,
    ),
    CellFigure(
        heading="Waited",
        explanation="mean time of waiting for capacity",
        value=lambda row: row.time.waiting_seconds,
        text=seconds_text,
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TradeOff:
    """A cell's time and cost, of the whole workload or until the goal's target. ``is_on_front``: no cell beats both."""

    row: CellRow
    seconds: Estimate
    usd: Estimate
    is_on_front: bool


def find_trade_offs(verdict: Verdict) -> tuple[TradeOff, ...]:
    """All cells whose time and cost are known, the fastest first. A refused cell is never on the front."""
    is_whole = verdict.goal.target is None
    known = [
        (row, seconds, usd)
        for row in verdict.ranked_rows
        for found in (row if is_whole else row.part(CellQuality),)
        for seconds, usd in ((found.seconds, found.usd),)
        if seconds is not None and usd is not None
    ]
    trade_offs, cheapest = [], float("inf")
    for row, seconds, usd in sorted(known, key=lambda each: (each[1].mean, each[2].mean)):
        # one run of a dropped cell may be ahead of the recommended cell's mean
        is_ahead = verdict.dropped.get(row.cell_id, 0.0) > 1
        is_on_front = row.cell_id not in verdict.refused and not is_ahead and usd.mean < cheapest
        if is_on_front:
            cheapest = usd.mean
        trade_offs.append(TradeOff(row=row, seconds=seconds, usd=usd, is_on_front=is_on_front))
    return tuple(trade_offs)
