"""The verdict as a table in a terminal."""

from collections.abc import Callable
from dataclasses import dataclass

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from traindyno.cli.output import SIMULATED
from traindyno.core.costs.prediction import Prediction
from traindyno.core.costs.quantity_text import number_text, seconds_text, share_text, usd_text
from traindyno.core.measurement.selection import Relation
from traindyno.core.measurement.statistics import Estimate
from traindyno.core.verdict.cell_row import CellRow
from traindyno.core.verdict.report_data import Report
from traindyno.core.verdict.scaling_text import describe_scaling
from traindyno.core.verdict.verdict import Verdict
from traindyno.core.verdict.verdict_text import describe_verdict


def print_verdict(console: Console, report: Report) -> None:
    console.print(_render(report))


def _render(report: Report) -> RenderableType:
    text = describe_verdict(report.verdict)
    parts: list[RenderableType] = [Text(f"{text.headline}\n", style="bold"), _table(report.verdict), Text()]
    parts += [
        Padding(Text(f"· {line}"), (0, 0, 0, 2))
        for line in (*text.support, *text.changes, *text.cautions, *text.dropped)
    ]
    parts += [Padding(Text(f"· {line}"), (0, 0, 0, 2)) for line in _not_steady(report.verdict)]
    parts += [
        Padding(Text(f"· {line}"), (0, 0, 0, 2)) for fit in report.verdict.scaling for line in describe_scaling(fit)
    ]
    if report.is_simulated:
        parts.insert(0, SIMULATED)
    return Group(*parts)


def _not_steady(verdict: Verdict) -> list[str]:
    return [
        f"{row.label or row.instance}: {row.unsteady_trials} of {row.trials} trials not steady: {reason}"
        for row in verdict.rows
        for reason in row.unsteady_reasons
    ]


def _outcomes(row: CellRow) -> str:
    return ", ".join(f"{count} {outcome}" for outcome, count in row.outcomes.items()) or "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A column of the table. ``is_known`` is asked of every cell: where none knows it, the column is omitted."""

    heading: str
    draw: Callable[[CellRow], str]
    is_number: bool = True
    is_known: Callable[[CellRow], bool] = lambda _: True


COLUMNS = (
    Shown(heading="cell", draw=lambda row: row.label or row.instance, is_number=False),
    Shown(heading="samples/s", draw=lambda row: _estimate(row.samples_per_second, number_text)),
    Shown(heading="time", draw=lambda row: _estimate(row.seconds, seconds_text)),
    Shown(
        heading="before training",
        draw=lambda row: seconds_text(row.before_training_seconds),
        is_known=lambda row: row.before_training_seconds is not None,
    ),
    Shown(heading="cost", draw=lambda row: _estimate(row.usd, usd_text)),
    Shown(
        heading="one run, 90 %",
        draw=lambda row: _prediction(row.prediction),
        is_known=lambda row: row.prediction is not None and row.prediction.seconds is not None,
    ),
    Shown(heading="waits for data", draw=lambda row: share_text(row.data_wait_share)),
    Shown(
        heading="recurring",
        draw=lambda row: share_text(row.recurring_share),
        is_known=lambda row: bool(row.recurring_share),
    ),
    Shown(
        heading="accuracy",
        draw=lambda row: share_text(row.accuracy.mean if row.accuracy else None),
        is_known=lambda row: row.accuracy is not None,
    ),
    Shown(heading="runs", draw=_outcomes, is_number=False),
)


def _table(verdict: Verdict) -> Table:
    table = Table(title=f"{verdict.suite_name}: {verdict.examples:,} examples", title_justify="left", pad_edge=False)
    shown = [column for column in COLUMNS if any(column.is_known(row) for row in verdict.rows)]
    table.add_column("")
    for column in shown:
        table.add_column(column.heading, justify="right" if column.is_number else "left", overflow="fold")
    as_good = {rival.cell_id for rival in verdict.related(Relation.EQUIVALENT)}
    for row in verdict.ranked_rows:
        is_best = row.cell_id == verdict.recommended
        mark = "→" if is_best else "≈" if row.cell_id in as_good else ""
        table.add_row(mark, *(column.draw(row) for column in shown), style="bold" if is_best else None)
    return table


def _prediction(prediction: Prediction | None) -> str:
    interval = prediction.seconds if prediction else None
    return "unknown" if interval is None else f"{seconds_text(interval.low)} to {seconds_text(interval.high)}"


def _estimate(estimate: Estimate | None, text: Callable[[float], str]) -> str:
    if estimate is None:
        return "unknown"
    if estimate.interval is None:
        return text(estimate.mean)
    half_width = (estimate.interval.high - estimate.interval.low) / 2
    return f"{text(estimate.mean)} ± {share_text(half_width / estimate.mean)}"
