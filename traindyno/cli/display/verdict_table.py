"""The verdict as a table in a terminal."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from traindyno.cli.display.interval_bar import interval_bars
from traindyno.cli.output import SIMULATED
from traindyno.core.costs.prediction import Prediction
from traindyno.core.costs.quantity_text import number_text, seconds_text, share_text, usd_text
from traindyno.core.measurement.selection import Relation
from traindyno.core.measurement.statistics import Estimate
from traindyno.core.verdict.cell_row import CellRow
from traindyno.core.verdict.goal_metric import estimate_of
from traindyno.core.verdict.recommendation_text import recommendation_sentences
from traindyno.core.verdict.report_data import Report
from traindyno.core.verdict.scaling_text import describe_scaling
from traindyno.core.verdict.trade_off import find_trade_offs
from traindyno.core.verdict.verdict import Verdict
from traindyno.core.verdict.verdict_text import describe_verdict

MOST_CELLS, MOST_LINES, MOST_ALTERNATIVES = 12, 6, 3


def print_verdict(console: Console, report: Report) -> None:
    console.print(_render(report))


def _render(report: Report) -> RenderableType:
    """Three sentences, the table, and the lines that a decision needs; the report has everything."""
    headline, *sentences = recommendation_sentences(report.verdict)
    parts: list[RenderableType] = [Text(headline, style="bold"), *map(Text, sentences), Text()]
    parts += [_table(report.verdict), Text()]
    parts += [Padding(Text(f"· {line}"), (0, 0, 0, 2)) for line in _lines(report)]
    if report.is_simulated:
        parts.insert(0, SIMULATED)
    return Group(*parts)


def _lines(report: Report) -> Iterator[str]:
    verdict = report.verdict
    text = describe_verdict(verdict)
    yield from (*text.support, *_alternatives(verdict), *_prices(report), *text.changes)
    more = (*text.cautions, *_not_steady(verdict), *text.dropped)
    scaling = tuple(line for fit in verdict.scaling for line in describe_scaling(fit))
    for lines in (more, scaling):
        yield from lines[:MOST_LINES]
        if len(lines) > MOST_LINES:
            yield f"and {len(lines) - MOST_LINES} more lines in the report"


def _alternatives(verdict: Verdict) -> Iterator[str]:
    """The cells that are faster, or cheaper, than the recommended cell."""
    others = [each for each in find_trade_offs(verdict) if each.is_on_front and each.row.cell_id != verdict.recommended]
    for each in others[:MOST_ALTERNATIVES]:
        yield f"Alternative: {each.row.label}, {seconds_text(each.seconds.mean)} for {usd_text(each.usd.mean)}."
    if len(others) > MOST_ALTERNATIVES:
        yield f"{len(others) - MOST_ALTERNATIVES} more alternatives are in the report."


def _prices(report: Report) -> Iterator[str]:
    """The verdict at other prices."""
    for option in report.pricing:
        if option.is_flipped:
            best = report.verdict.row(option.recommended).label if option.recommended else "no cell"
            usd = usd_text(option.usd.get(option.recommended or ""))
            yield f"The verdict changes if you pay {option.name}: {best}, {usd}."
    if report.pricing and not any(option.is_flipped for option in report.pricing):
        yield f"The verdict holds at {len(report.pricing)} ways to pay: {', '.join(o.name for o in report.pricing)}."


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
    """A column of the table. ``is_known``: whether a cell has the value; if no cell has it, the column is omitted."""

    heading: str
    draw: Callable[[CellRow], str]
    is_number: bool = True
    is_known: Callable[[CellRow], bool] = lambda _: True


COLUMNS = (
    Shown(heading="cell", draw=lambda row: row.label or row.instance, is_number=False),
    Shown(
        heading="reached",
        draw=lambda row: f"{row.quality.reached or 0} of {row.trials}",
        is_known=lambda row: row.quality.reached is not None,
    ),
    Shown(
        heading="time to target",
        draw=lambda row: _estimate(row.quality.seconds, seconds_text),
        is_known=lambda row: row.quality.reached is not None,
    ),
    Shown(
        heading="cost to target",
        draw=lambda row: _estimate(row.quality.usd, usd_text),
        is_known=lambda row: row.quality.usd is not None,
    ),
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
        draw=lambda row: _share(row.accuracy),
        is_known=lambda row: row.accuracy is not None,
    ),
    Shown(
        heading="evaluation loss",
        draw=lambda row: _estimate(row.quality.loss, number_text),
        is_known=lambda row: row.quality.loss is not None,
    ),
    Shown(
        heading="perplexity",
        draw=lambda row: _estimate(row.quality.perplexity, number_text),
        is_known=lambda row: row.quality.perplexity is not None,
    ),
    Shown(heading="runs", draw=_outcomes, is_number=False),
)


def _table(verdict: Verdict) -> Table:
    """The best cells; the first column of numbers is the goal's, drawn as intervals on one scale."""
    rows = verdict.ranked_rows
    title = f"{verdict.suite_name}: {verdict.examples:,} examples"
    if len(rows) > MOST_CELLS:
        title = f"{title}, the best {MOST_CELLS} of {len(rows)} cells"
    table = Table(title=title, title_justify="left", pad_edge=False)
    shown = [column for column in COLUMNS if any(column.is_known(row) for row in rows)]
    bars = interval_bars([estimate_of(row, verdict.metric) for row in rows[:MOST_CELLS]], tolerance=verdict.tolerance)
    table.add_column("")
    table.add_column(shown[0].heading, overflow="fold")
    table.add_column(f"{verdict.metric.value.replace('_', ' ')}, 95 %", no_wrap=True)
    for column in shown[1:]:
        table.add_column(column.heading, justify="right" if column.is_number else "left", overflow="fold")
    as_good = {rival.cell_id for rival in verdict.related(Relation.EQUIVALENT)}
    for row, bar in zip(rows[:MOST_CELLS], bars, strict=True):
        is_best = row.cell_id == verdict.recommended
        mark = "→" if is_best else "≈" if row.cell_id in as_good else ""
        cells = (shown[0].draw(row), bar, *(column.draw(row) for column in shown[1:]))
        table.add_row(mark, *cells, style="bold" if is_best else None)
    return table


def _share(estimate: Estimate | None) -> str:
    """With half the interval in percentage points."""
    if estimate is None or estimate.interval is None:
        return share_text(estimate.mean if estimate else None)
    half_width = (estimate.interval.high - estimate.interval.low) / 2
    return f"{share_text(estimate.mean)} ± {half_width * 100:.1f}"


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
