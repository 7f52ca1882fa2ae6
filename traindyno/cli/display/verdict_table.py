"""The verdict as a table in a terminal."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table

from traindyno.cli.output import SIMULATED, Terminal, styled, titled_table
from traindyno.core.costs.quantity_text import (
    estimate_text,
    seconds_text,
    share_text,
    usd_text,
)
from traindyno.core.verdict.cell_figures import (
    CELL_FIGURES,
    CellFigure,
    InTerminal,
    find_trade_offs,
    outcomes_text,
)
from traindyno.core.verdict.cell_row import CellRow
from traindyno.core.verdict.report_data import Report
from traindyno.core.verdict.verdict import Verdict
from traindyno.core.verdict.verdict_text import describe_verdict
from traindyno.figures.estimates import Estimate
from traindyno.figures.selection import Relation
from traindyno.report.feature import ReportFeature

MOST_CELLS = 12
MOST_LINES = 6
MOST_ALTERNATIVES = 3
BAR_WIDTH = 24
WIDEST_MEANS = 2.5


def print_verdict(console: Terminal, report: Report, features: Iterable[ReportFeature]) -> None:
    """Three sentences, the table, and the lines that a decision needs; the report has
    everything.
    """
    headline, *sentences = describe_verdict(report.verdict).lead
    parts: list[RenderableType] = [styled(headline, "bold"), *sentences, ""]
    parts += [_table(report.verdict), ""]
    parts += [Padding(f"· {line}", (0, 0, 0, 2)) for line in _lines(report, features)]
    if report.is_simulated:
        parts.insert(0, SIMULATED)
    console.print(Group(*parts))


def _lines(report: Report, features: Iterable[ReportFeature]) -> Iterator[str]:
    verdict = report.verdict
    text = describe_verdict(verdict)
    yield from text.support
    others = [
        trade_off
        for trade_off in find_trade_offs(verdict)
        if trade_off[0].cell_id != verdict.recommended
    ]
    for row, seconds, usd in others[:MOST_ALTERNATIVES]:
        yield f"Alternative: {row.label}, {seconds_text(seconds.mean)} for {usd_text(usd.mean)}."
    if len(others) > MOST_ALTERNATIVES:
        yield f"{len(others) - MOST_ALTERNATIVES} more alternatives are in the report."
    for feature in features:
        yield from feature.verdict_lines(report)
    yield from (*text.changes, *text.cautions[:MOST_LINES])
    if len(text.cautions) > MOST_LINES:
        yield f"{len(text.cautions) - MOST_LINES} more cautions are in the report."


def _table(verdict: Verdict) -> Table:
    """The best cells; the first column of numbers is the goal's, drawn as intervals on one
    scale.
    """
    rows = verdict.ranked_rows
    title = f"{verdict.suite_name}: {verdict.examples:,} examples"
    if len(rows) > MOST_CELLS:
        title = f"{title}, the best {MOST_CELLS} of {len(rows)} cells"
    shown = [
        figure
        for figure in CELL_FIGURES
        if figure.in_terminal is InTerminal.ALWAYS
        or (figure.in_terminal is InTerminal.IF_KNOWN and figure.is_known_of(rows))
    ]
    bars = interval_bars(
        [row.estimate(verdict.metric) for row in rows[:MOST_CELLS]], tolerance=verdict.tolerance
    )
    numbers = (f">{figure.heading[0].lower()}{figure.heading[1:]}~" for figure in shown)
    level = f"{100 * (1 - verdict.significance):.4g} %"
    table = titled_table(
        title, "", "cell~", f"{verdict.metric.value.replace('_', ' ')}, {level}", *numbers
    )
    table.columns[2].no_wrap = True
    as_good = {rival.cell_id for rival in verdict.related(Relation.EQUIVALENT)}
    for row, bar in zip(rows[:MOST_CELLS], bars, strict=True):
        is_best = row.cell_id == verdict.recommended
        mark = "→" if is_best else "≈" if row.cell_id in as_good else ""
        figures = (_draw(figure, row) for figure in shown)
        table.add_row(
            mark, row.label or row.instance, bar, *figures, style="bold" if is_best else None
        )
    return table


def _draw(figure: CellFigure, row: CellRow) -> str:
    value = figure.value(row)
    if isinstance(value, Mapping):
        return outcomes_text(value)
    return (
        _estimate(value, figure.text) if isinstance(value, Estimate) else figure.plain_text(value)
    )


def _estimate(estimate: Estimate, text: Callable[[float], str]) -> str:
    """The mean ± half the interval, which is in percentage points for a share, else in percent of
    the mean.
    """
    if estimate.interval is None:
        return text(estimate.mean)
    low = estimate.interval.low
    high = estimate.interval.high
    if text is share_text:
        return f"{text(estimate.mean)} ± {(high - low) / 2 * 100:.1f}"
    return estimate_text(estimate.mean, low, high, text)


def interval_bars(estimates: Sequence[Estimate | None], *, tolerance: float) -> list[str]:
    """A line of characters for each estimate, all on one scale.

    ``├─●─┤`` is the interval with its mean; ``:`` is the first estimate's mean plus the
    ``tolerance``.
    """
    known = [estimate for estimate in estimates if estimate is not None]
    if not known:
        return ["" for _ in estimates]
    means = [estimate.mean for estimate in known]
    intervals = [estimate.interval for estimate in known if estimate.interval]
    high = min(max((*means, *(interval.high for interval in intervals))), WIDEST_MEANS * max(means))
    low = min((*means, *(interval.low for interval in intervals)))
    low = 0.0 if low < 0.5 * high else low - 0.05 * (high - low)
    span = (high - low) or 1.0

    def place(value: float) -> int:
        return max(0, min(BAR_WIDTH - 1, round((value - low) / span * (BAR_WIDTH - 1))))

    edge = place(known[0].mean * (1 + tolerance))

    def bar(estimate: Estimate) -> str:
        reach = estimate.interval
        letters = [" "] * BAR_WIDTH
        first, last = (
            (place(reach.low), place(reach.high)) if reach else (place(estimate.mean),) * 2
        )
        letters[edge] = ":"
        letters[first : last + 1] = "─" * (last + 1 - first)
        if first < last:
            letters[first], letters[last] = "├", "┤"
        letters[place(estimate.mean)] = "●"
        return "".join(letters)

    return ["" if estimate is None else bar(estimate) for estimate in estimates]
