"""Every cell, measured or not, with intervals; then the same as a picture."""

from traindyno.core.cell_row import CellRow
from traindyno.core.goal_metric import Metric, estimate_of
from traindyno.core.quantity_text import bytes_text, number_text, seconds_text, share_text, usd_text
from traindyno.core.statistics import Estimate
from traindyno.core.verdict import Verdict
from traindyno.core.verdict_text import metric_text
from traindyno.report.estimate_text import estimate_cell
from traindyno.report.interval_chart import Bar, draw_intervals
from traindyno.report.markup import Markup, element
from traindyno.report.table import Column, draw_table

METRIC_NAMES = {Metric.SECONDS: "time", Metric.USD: "cost", Metric.INSTANCE_HOURS: "instance hours"}


def draw_cells(verdict: Verdict) -> Markup:
    rows = sorted(verdict.rows, key=lambda row: _order(row, verdict.metric))
    emphasized = [index for index, row in enumerate(rows) if row.cell_id == verdict.recommended]
    return element(
        "section",
        element("h2", "Cells"),
        draw_table(
            _columns(),
            [_row(row) for row in rows],
            caption="For the whole workload, projected from each trial: overhead once, then the steady rate.",
            emphasized=emphasized,
        ),
        _chart(rows, verdict, verdict.metric, f"Whole workload, {METRIC_NAMES[verdict.metric]}"),
        _rate_chart(rows, verdict),
        id="cells",
    )


def _columns() -> list[Column]:
    return [
        Column(heading="Cell"),
        Column(heading="Trials", is_number=True, explanation="measured, of all that ended"),
        Column(heading="Samples/s", is_number=True),
        Column(heading="Tokens/s", is_number=True),
        Column(heading="CV", is_number=True, explanation="spread of single trials around their mean"),
        Column(heading="Time", is_number=True),
        Column(heading="Cost", is_number=True),
        Column(heading="MFU", is_number=True, explanation="model FLOPs utilization"),
        Column(heading="Data wait", is_number=True, explanation="share of time spent waiting for data"),
        Column(heading="Peak memory", is_number=True, explanation="of one device, the highest of all ranks"),
        Column(heading="Capacity wait", is_number=True, explanation="mean time until instances were there"),
        Column(heading="Outcomes"),
    ]


def _row(row: CellRow) -> list[str | None]:
    return [
        row.label,
        f"{row.trials}/{sum(row.outcomes.values())}",
        estimate_cell(row.samples_per_second, number_text),
        estimate_cell(row.tokens_per_second, number_text),
        share_text(row.samples_per_second.variation) if row.samples_per_second else "–",
        estimate_cell(row.seconds, seconds_text),
        estimate_cell(row.usd, usd_text),
        share_text(row.model_flops_utilization) if row.trials else "–",
        share_text(row.data_wait_share) if row.trials else "–",
        bytes_text(row.peak_memory_bytes) if row.trials else "–",
        seconds_text(row.waiting_seconds),
        ", ".join(f"{count} {outcome.replace('_', ' ')}" for outcome, count in row.outcomes.items()) or "not run",
    ]


def _chart(rows: list[CellRow], verdict: Verdict, metric: Metric, title: str) -> Markup | None:
    bars = [_bar(row, verdict, found) for row in rows if (found := estimate_of(row, metric))]
    return (
        _figure(draw_intervals(bars, title=title, value_text=lambda value: metric_text(metric, value)), title)
        if bars
        else None
    )


def _rate_chart(rows: list[CellRow], verdict: Verdict) -> Markup | None:
    bars = [_bar(row, verdict, row.samples_per_second) for row in rows if row.samples_per_second]
    title = "Samples per second, all devices"
    return _figure(draw_intervals(bars, title=title, value_text=number_text), title) if bars else None


def _bar(row: CellRow, verdict: Verdict, estimate: Estimate) -> Bar:
    return Bar(label=row.label, estimate=estimate, is_best=row.cell_id == verdict.recommended)


def _figure(picture: Markup, title: str) -> Markup:
    return element("figure", element("figcaption", title), picture)


def _order(row: CellRow, metric: Metric) -> float:
    found = estimate_of(row, metric)
    return found.mean if found else float("inf")
