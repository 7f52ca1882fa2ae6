"""The same measurements at other prices: the recommended cell and the cost of each cell for each way to pay."""

from traindyno.core.costs.quantity_text import UNKNOWN, exact_usd_text, seconds_text, usd_text
from traindyno.core.verdict.pricing import PricedOption
from traindyno.core.verdict.report_data import Report
from traindyno.core.verdict.verdict import Verdict
from traindyno.report.markup import Markup, PlotData, columns, download_csv, draw_table, element, join

SUMMARY = columns(
    *("Paid", "Recommended", "Verdict", "# Cost", "# Time", "# Price of its instance", "From"),
    explained={"Time": "wall clock, interruptions included"},
)


def draw_pricing(report: Report) -> Markup | None:
    if not report.pricing:
        return None
    flipped = [option.name for option in report.pricing if option.is_flipped]
    answer = "The same cell is recommended at all of these prices."
    if flipped:
        answer = f"Another cell is recommended if you pay: {'; '.join(flipped)}."
    return element(
        "section",
        element("h2", "At other prices"),
        element("p", answer),
        draw_table(
            SUMMARY,
            [_summary(option, report.verdict) for option in report.pricing],
            caption="The runs were measured once; each row applies other prices to the same measurements.",
            emphasized=[index for index, option in enumerate(report.pricing) if option.is_flipped],
        ),
        element("p", "Time and cost of all cells: ", download_csv(_data(report)), class_="hint"),
        id="pricing",
    )


def _summary(option: PricedOption, verdict: Verdict) -> list[str | None]:
    best = verdict.row(option.recommended) if option.recommended else None
    usd, seconds = (values.get(best.cell_id) if best else None for values in (option.usd, option.seconds))
    price = option.usd_per_hour.get(best.instance) if best else None
    return [
        option.name,
        best.label if best else "no cell",
        join("changes" if option.is_flipped else "holds", element("small", option.finding.value.replace("_", " "))),
        usd_text(usd),
        seconds_text(seconds),
        UNKNOWN if price is None else f"{exact_usd_text(price)}/h",
        option.basis,
    ]


def _data(report: Report) -> PlotData:
    return PlotData(
        name="pricing",
        header=("cell", *(f"{option.name}: {unit}" for option in report.pricing for unit in ("usd", "seconds"))),
        rows=[
            (
                row.label,
                *(values.get(row.cell_id, "") for option in report.pricing for values in (option.usd, option.seconds)),
            )
            for row in report.verdict.ranked_rows
        ],
    )
