"""The verdict as a table in a terminal."""

from collections.abc import Callable, Iterator

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from traindyno.cli.output import SIMULATED
from traindyno.core.costs.quantity_text import number_text, seconds_text, share_text, usd_text
from traindyno.core.measurement.selection import Relation
from traindyno.core.measurement.statistics import Estimate
from traindyno.core.verdict.cell_row import CellRow
from traindyno.core.verdict.report_data import Report
from traindyno.core.verdict.verdict import Verdict
from traindyno.core.verdict.verdict_text import describe_verdict


def print_verdict(console: Console, report: Report) -> None:
    console.print(_render(report))


def _render(report: Report) -> RenderableType:
    text = describe_verdict(report.verdict)
    parts: list[RenderableType] = [Text(f"{text.headline}\n", style="bold"), _table(report.verdict), Text()]
    parts += [Padding(Text(f"· {line}"), (0, 0, 0, 2)) for line in (*text.support, *text.changes, *text.cautions)]
    if report.is_simulated:
        parts.insert(0, SIMULATED)
    return Group(*parts)


def _table(verdict: Verdict) -> Table:
    table = Table(title=f"{verdict.suite_name}: {verdict.examples:,} examples", title_justify="left", pad_edge=False)
    has_accuracy = any(row.accuracy for row in verdict.rows)
    headings = [
        "",
        "cell",
        "samples/s",
        "time",
        "cost",
        "waits for data",
        *(["accuracy"] if has_accuracy else []),
        "runs",
    ]
    for heading in headings:
        is_number = heading not in {"", "cell", "runs"}
        table.add_column(heading, justify="right" if is_number else "left", overflow="fold")
    as_good = {rival.cell_id for rival in verdict.related(Relation.EQUIVALENT)}
    for row in verdict.ranked_rows:
        is_best = row.cell_id == verdict.recommended
        mark = "→" if is_best else "≈" if row.cell_id in as_good else ""
        table.add_row(mark, *_cells(row, has_accuracy=has_accuracy), style="bold" if is_best else None)
    return table


def _cells(row: CellRow, *, has_accuracy: bool) -> Iterator[str]:
    yield row.label or row.instance
    yield _estimate(row.samples_per_second, number_text)
    yield _estimate(row.seconds, seconds_text)
    yield _estimate(row.usd, usd_text)
    yield share_text(row.data_wait_share)
    if has_accuracy:
        yield share_text(row.accuracy.mean if row.accuracy else None)
    yield ", ".join(f"{count} {outcome}" for outcome, count in row.outcomes.items()) or "none"


def _estimate(estimate: Estimate | None, text: Callable[[float], str]) -> str:
    if estimate is None:
        return "unknown"
    if estimate.interval is None:
        return text(estimate.mean)
    half_width = (estimate.interval.high - estimate.interval.low) / 2
    return f"{text(estimate.mean)} ± {share_text(half_width / estimate.mean)}"
