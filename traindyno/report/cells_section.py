"""Every cell, measured or not, with intervals, as a table and as charts."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from traindyno.core.costs.quantity_text import bytes_text, number_text, seconds_text, share_text, usd_text
from traindyno.core.measurement.statistics import Estimate
from traindyno.core.verdict.cell_row import CellRow
from traindyno.core.verdict.goal_metric import Metric, estimate_of
from traindyno.core.verdict.verdict import Verdict
from traindyno.core.verdict.verdict_text import metric_text
from traindyno.report.estimate_text import estimate_cell
from traindyno.report.interval_chart import Bar, draw_intervals
from traindyno.report.markup import Markup, element, join
from traindyno.report.plot import Unit, seconds_unit
from traindyno.report.table import Column, draw_table

METRIC_NAMES = {Metric.SECONDS: "time", Metric.USD: "cost", Metric.INSTANCE_HOURS: "instance hours"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantity:
    """A column of the table; omitted, and named below it, if it is unknown for every cell."""

    column: Column
    is_known: Callable[[CellRow], bool]
    draw: Callable[[CellRow], str]


def draw_cells(verdict: Verdict) -> Markup:
    rows = sorted(verdict.rows, key=lambda row: _order(row, verdict.metric))
    shown = [quantity for quantity in QUANTITIES if any(quantity.is_known(row) for row in rows)]
    hidden = [quantity.column.heading for quantity in QUANTITIES if quantity not in shown]
    return element(
        "section",
        element("h2", "Cells"),
        draw_table(
            [Column(heading="Cell"), *(quantity.column for quantity in shown)],
            [[row.label, *(quantity.draw(row) for quantity in shown)] for row in rows],
            caption="For the whole workload, projected from each trial: overhead once, then the steady rate.",
            emphasized=[index for index, row in enumerate(rows) if row.cell_id == verdict.recommended],
        ),
        element("p", f"Unknown for every cell: {', '.join(hidden)}.", class_="hint") if hidden else None,
        _metric_chart(rows, verdict),
        _rate_chart(rows, verdict),
        id="cells",
    )


def _outcomes(row: CellRow) -> Markup:
    ended = ", ".join(f"{count} {outcome.replace('_', ' ')}" for outcome, count in row.outcomes.items())
    return join(f"{row.trials} of {sum(row.outcomes.values())}", element("small", ended or "not run"))


QUANTITIES = (
    Quantity(
        column=Column(heading="Trials", is_number=True, explanation="measured, of all that ended"),
        is_known=lambda _: True,
        draw=_outcomes,
    ),
    Quantity(
        column=Column(heading="Samples/s", is_number=True),
        is_known=lambda row: row.samples_per_second is not None,
        draw=lambda row: estimate_cell(row.samples_per_second, number_text),
    ),
    Quantity(
        column=Column(heading="Tokens/s", is_number=True),
        is_known=lambda row: row.tokens_per_second is not None,
        draw=lambda row: estimate_cell(row.tokens_per_second, number_text),
    ),
    Quantity(
        column=Column(heading="CV", is_number=True, explanation="standard deviation of the trials' rates ÷ their mean"),
        is_known=lambda row: row.samples_per_second is not None and row.samples_per_second.variation is not None,
        draw=lambda row: share_text(row.samples_per_second.variation) if row.samples_per_second else "–",
    ),
    Quantity(
        column=Column(heading="Time", is_number=True),
        is_known=lambda row: row.seconds is not None,
        draw=lambda row: estimate_cell(row.seconds, seconds_text),
    ),
    Quantity(
        column=Column(heading="Cost", is_number=True),
        is_known=lambda row: row.usd is not None,
        draw=lambda row: estimate_cell(row.usd, usd_text),
    ),
    Quantity(
        column=Column(heading="MFU", is_number=True, explanation="model FLOPs utilization"),
        is_known=lambda row: row.model_flops_utilization is not None,
        draw=lambda row: share_text(row.model_flops_utilization) if row.trials else "–",
    ),
    Quantity(
        column=Column(heading="Data wait", is_number=True, explanation="share of time spent waiting for data"),
        is_known=lambda row: row.data_wait_share is not None,
        draw=lambda row: share_text(row.data_wait_share) if row.trials else "–",
    ),
    Quantity(
        column=Column(heading="Memory", is_number=True, explanation="peak of one device, the highest of all ranks"),
        is_known=lambda row: row.peak_memory_bytes is not None,
        draw=lambda row: bytes_text(row.peak_memory_bytes) if row.trials else "–",
    ),
    Quantity(
        column=Column(heading="Waited", is_number=True, explanation="mean time of waiting for capacity"),
        is_known=lambda row: row.waiting_seconds is not None,
        draw=lambda row: seconds_text(row.waiting_seconds),
    ),
)


def _metric_chart(rows: Sequence[CellRow], verdict: Verdict) -> Markup | None:
    metric = verdict.metric
    bars = [_bar(row, verdict, found) for row in rows if (found := estimate_of(row, metric))]
    title = f"Whole workload, {METRIC_NAMES[metric]}"
    return _figure(bars, title, lambda high: _unit(metric, high), lambda value: metric_text(metric, value))


def _unit(metric: Metric, high: float) -> Unit:
    match metric:
        case Metric.SECONDS:
            return seconds_unit(high)
        case Metric.USD:
            return Unit(size=1, before="$")
        case Metric.INSTANCE_HOURS:
            return Unit(size=1, after=" h")


def _rate_chart(rows: Sequence[CellRow], verdict: Verdict) -> Markup | None:
    bars = [_bar(row, verdict, row.samples_per_second) for row in rows if row.samples_per_second]
    return _figure(bars, "Samples per second, all devices", lambda _: Unit(size=1), number_text)


def _figure(
    bars: Sequence[Bar], title: str, unit: Callable[[float], Unit], value_text: Callable[[float], str]
) -> Markup | None:
    if not bars:
        return None
    picture = draw_intervals(bars, title=title, unit=unit, value_text=value_text)
    return element("figure", element("figcaption", title), picture)


def _bar(row: CellRow, verdict: Verdict, estimate: Estimate) -> Bar:
    return Bar(label=row.label, estimate=estimate, is_best=row.cell_id == verdict.recommended)


def _order(row: CellRow, metric: Metric) -> float:
    found = estimate_of(row, metric)
    return found.mean if found else float("inf")
