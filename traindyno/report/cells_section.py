"""Every cell, measured or not, with intervals, as a table and as charts."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from traindyno.core.costs.quantity_text import bytes_text, number_text, range_text, seconds_text, share_text, usd_text
from traindyno.core.measurement.statistics import Interval
from traindyno.core.verdict.cell_row import CellRow
from traindyno.core.verdict.verdict import Verdict
from traindyno.report.charts.cell_charts import CELL_CHARTS
from traindyno.report.estimate_text import estimate_cell
from traindyno.report.markup import Markup, element, join
from traindyno.report.table import Column, draw_table

CAPTION = (
    "For the whole workload, projected from each trial: overhead once, then the steady rate, divided by the success"
    " rate. Time is wall clock, from the job's creation to its end. The recommended cell's figures are corrected for"
    " its selection as the best."
)
PREDICTION = "90 % prediction interval for one future run of the whole workload"


@dataclass(frozen=True, slots=True, kw_only=True)
class CellColumn:
    """A column of the table; omitted if it is unknown for every cell, and named below it unless ``is_optional``."""

    column: Column
    is_known: Callable[[CellRow], bool]
    draw: Callable[[CellRow], str]
    is_optional: bool = False


def draw_cells(verdict: Verdict) -> Markup:
    rows = verdict.ranked_rows
    shown = [each for each in CELL_COLUMNS if any(each.is_known(row) for row in rows)]
    hidden = [each.column.heading for each in CELL_COLUMNS if each not in shown and not each.is_optional]
    return element(
        "section",
        element("h2", "Cells"),
        draw_table(
            [Column(heading="Cell"), *(each.column for each in shown)],
            [[row.label, *(each.draw(row) for each in shown)] for row in rows],
            caption=CAPTION,
            emphasized=[index for index, row in enumerate(rows) if row.cell_id == verdict.recommended],
        ),
        element("p", f"Unknown for every cell: {', '.join(hidden)}.", class_="hint") if hidden else None,
        _not_steady(rows),
        *(chart.draw(rows, verdict.recommended) for chart in CELL_CHARTS),
        id="cells",
    )


def _outcomes(row: CellRow) -> Markup:
    ended = ", ".join(f"{count} {outcome.replace('_', ' ')}" for outcome, count in row.outcomes.items())
    return join(f"{row.trials} of {sum(row.outcomes.values())}", element("small", ended or "not run"))


CELL_COLUMNS = (
    CellColumn(
        column=Column(
            heading="Reached", is_number=True, explanation="trials that reached the goal's target, of those measured"
        ),
        is_known=lambda row: row.quality.reached is not None,
        draw=lambda row: f"{row.quality.reached or 0} of {row.trials}",
        is_optional=True,
    ),
    CellColumn(
        column=Column(
            heading="Time to target", is_number=True, explanation="from the job's creation to the first such evaluation"
        ),
        is_known=lambda row: row.quality.reached is not None,
        draw=lambda row: estimate_cell(row.quality.seconds, seconds_text),
        is_optional=True,
    ),
    CellColumn(
        column=Column(heading="Cost to target", is_number=True, explanation="what was billed until that evaluation"),
        is_known=lambda row: row.quality.usd is not None,
        draw=lambda row: estimate_cell(row.quality.usd, usd_text),
        is_optional=True,
    ),
    CellColumn(
        column=Column(heading="Trials", is_number=True, explanation="measured, of all that ended"),
        is_known=lambda _: True,
        draw=_outcomes,
    ),
    CellColumn(
        column=Column(heading="Samples/s", is_number=True),
        is_known=lambda row: row.samples_per_second is not None,
        draw=lambda row: estimate_cell(row.samples_per_second, number_text),
    ),
    CellColumn(
        column=Column(heading="Tokens/s", is_number=True),
        is_known=lambda row: row.tokens_per_second is not None,
        draw=lambda row: estimate_cell(row.tokens_per_second, number_text),
    ),
    CellColumn(
        column=Column(heading="Steps/s", is_number=True, explanation="iterations; a step is one of the optimizer"),
        is_known=lambda row: row.steps_per_second is not None,
        draw=lambda row: estimate_cell(row.steps_per_second, number_text),
    ),
    CellColumn(
        column=Column(heading="CV", is_number=True, explanation="standard deviation of the trials' rates ÷ their mean"),
        is_known=lambda row: row.samples_per_second is not None and row.samples_per_second.variation is not None,
        draw=lambda row: share_text(row.samples_per_second.variation) if row.samples_per_second else "–",
    ),
    CellColumn(
        column=Column(heading="Time", is_number=True),
        is_known=lambda row: row.seconds is not None,
        draw=lambda row: estimate_cell(row.seconds, seconds_text),
    ),
    CellColumn(
        column=Column(
            heading="Before training",
            is_number=True,
            explanation="part of the time: waiting for capacity, starting and downloading",
        ),
        is_known=lambda row: row.before_training_seconds is not None,
        draw=lambda row: seconds_text(row.before_training_seconds),
    ),
    CellColumn(
        column=Column(heading="One run, time", is_number=True, explanation=PREDICTION),
        is_known=lambda row: row.prediction is not None and row.prediction.seconds is not None,
        draw=lambda row: _interval(row.prediction.seconds if row.prediction else None, seconds_text),
    ),
    CellColumn(
        column=Column(
            heading="Billed time", is_number=True, explanation="seconds of each instance that SageMaker bills"
        ),
        is_known=lambda row: row.billable_seconds is not None,
        draw=lambda row: estimate_cell(row.billable_seconds, seconds_text),
    ),
    CellColumn(
        column=Column(heading="Price per hour", is_number=True, explanation="of all instances"),
        is_known=lambda row: row.usd_per_hour is not None,
        draw=lambda row: usd_text(row.usd_per_hour),
    ),
    CellColumn(
        column=Column(heading="Cost", is_number=True),
        is_known=lambda row: row.usd is not None,
        draw=lambda row: estimate_cell(row.usd, usd_text),
    ),
    CellColumn(
        column=Column(heading="One run, cost", is_number=True, explanation=PREDICTION),
        is_known=lambda row: row.prediction is not None and row.prediction.usd is not None,
        draw=lambda row: _interval(row.prediction.usd if row.prediction else None, usd_text),
    ),
    CellColumn(
        column=Column(
            heading="Billed share", is_number=True, explanation="billable ÷ training time; below 100 % with spot"
        ),
        is_known=lambda row: row.billable_share is not None and row.billable_share < 1,
        draw=lambda row: share_text(row.billable_share),
        is_optional=True,
    ),
    CellColumn(
        column=Column(
            heading="Recurring", is_number=True, explanation="share of step time: checkpoints, evaluation, stalls"
        ),
        is_known=lambda row: bool(row.recurring_share),
        draw=lambda row: share_text(row.recurring_share) if row.trials else "–",
        is_optional=True,
    ),
    CellColumn(
        column=Column(heading="Accuracy", is_number=True, explanation="of the last evaluation, mean of the trials"),
        is_known=lambda row: row.accuracy is not None,
        draw=lambda row: estimate_cell(row.accuracy, share_text),
    ),
    CellColumn(
        column=Column(heading="Evaluation loss", is_number=True, explanation="of the last evaluation"),
        is_known=lambda row: row.quality.loss is not None,
        draw=lambda row: estimate_cell(row.quality.loss, number_text),
        is_optional=True,
    ),
    CellColumn(
        column=Column(heading="Perplexity", is_number=True, explanation="of the last evaluation"),
        is_known=lambda row: row.quality.perplexity is not None,
        draw=lambda row: estimate_cell(row.quality.perplexity, number_text),
        is_optional=True,
    ),
    CellColumn(
        column=Column(heading="MFU", is_number=True, explanation="model FLOPs utilization"),
        is_known=lambda row: row.model_flops_utilization is not None,
        draw=lambda row: share_text(row.model_flops_utilization) if row.trials else "–",
    ),
    CellColumn(
        column=Column(heading="Data wait", is_number=True, explanation="share of time spent waiting for data"),
        is_known=lambda row: row.data_wait_share is not None,
        draw=lambda row: share_text(row.data_wait_share) if row.trials else "–",
    ),
    CellColumn(
        column=Column(heading="Memory", is_number=True, explanation="peak of one device, the highest of all ranks"),
        is_known=lambda row: row.peak_memory_bytes is not None,
        draw=lambda row: bytes_text(row.peak_memory_bytes) if row.trials else "–",
    ),
    CellColumn(
        column=Column(heading="Waited", is_number=True, explanation="mean time of waiting for capacity"),
        is_known=lambda row: row.waiting_seconds is not None,
        draw=lambda row: seconds_text(row.waiting_seconds),
    ),
)


def _interval(interval: Interval | None, text: Callable[[float | None], str]) -> str:
    return "–" if interval is None else range_text(text(interval.low), text(interval.high))


def _not_steady(rows: Sequence[CellRow]) -> Markup | None:
    """Which cells' trials were not steady, and why."""
    items = [
        element("li", f"{row.label or row.instance}: {row.unsteady_trials} of {row.trials} trials. {reason}.")
        for row in rows
        for reason in row.unsteady_reasons
    ]
    if not items:
        return None
    return element("details", element("summary", "Trials that were not steady"), element("ul", *items))
