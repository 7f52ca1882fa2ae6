"""The verdict as a table in a terminal."""

from collections.abc import Callable

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from traindyno.cli.output import SIMULATED
from traindyno.core.costs.quantity_text import number_text, seconds_text, share_text, usd_text
from traindyno.core.measurement.statistics import Estimate
from traindyno.core.verdict.cell_row import CellRow
from traindyno.core.verdict.report_data import Report
from traindyno.core.verdict.verdict import Verdict
from traindyno.core.verdict.verdict_text import describe_verdict


def print_verdict(console: Console, report: Report) -> None:
    console.print(_render(report))


def _render(report: Report) -> RenderableType:
    text = describe_verdict(report.verdict)
    parts: list[RenderableType] = [_table(report.verdict), Text(f"\n{text.headline}", style="bold")]
    parts += [Padding(Text(f"· {line}"), (0, 0, 0, 2)) for line in (*text.support, *text.changes, *text.cautions)]
    if report.is_simulated:
        parts.insert(0, SIMULATED)
    return Group(*parts)


def _table(verdict: Verdict) -> Table:
    table = Table(title=f"{verdict.suite_name}: {verdict.examples:,} examples", title_justify="left", pad_edge=False)
    for heading in ("", "cell", "samples/s", "time", "cost", "waits for data", "runs"):
        is_number = heading not in {"", "cell", "runs"}
        table.add_column(heading, justify="right" if is_number else "left", overflow="fold")
    order = sorted(verdict.rows, key=lambda row: row.seconds.mean if row.seconds else float("inf"))
    for row in order:
        is_best = row.cell_id == verdict.recommended
        table.add_row(*_cells(row, is_best=is_best), style="bold" if is_best else None)
    return table


def _cells(row: CellRow, *, is_best: bool) -> tuple[str, ...]:
    mark = "→" if is_best else ""
    label = row.label or row.instance
    return (
        mark,
        label,
        _estimate(row.samples_per_second, number_text),
        _estimate(row.seconds, seconds_text),
        _estimate(row.usd, usd_text),
        share_text(row.data_wait_share),
        ", ".join(f"{count} {outcome}" for outcome, count in row.outcomes.items()) or "none",
    )


def _estimate(estimate: Estimate | None, text: Callable[[float], str]) -> str:
    if estimate is None:
        return "unknown"
    if estimate.interval is None:
        return text(estimate.mean)
    half_width = (estimate.interval.high - estimate.interval.low) / 2
    return f"{text(estimate.mean)} ± {share_text(half_width / estimate.mean)}"
