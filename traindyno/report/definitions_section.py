"""Samples per second by every definition in use, from the same logs, side by side with ours."""

from collections.abc import Sequence

from traindyno.core.costs.quantity_text import change_text, number_text
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.measurement.throughput_definitions import DEFINITIONS
from traindyno.core.statistics.estimates import estimate
from traindyno.core.verdict.cell_trials import suite_trials
from traindyno.core.verdict.report_data import Report
from traindyno.report.markup import Markup, element, join
from traindyno.report.table import Column, draw_table


def draw_definitions(report: Report) -> Markup | None:
    trials = suite_trials(report.suite, report.cells, report.results)
    rows = [_row(each.cell.label, each.measured) for each in trials if each.measured]
    if not rows:
        return None
    columns = [Column(heading="Cell"), Column(heading="Traindyno", is_number=True)]
    columns += [Column(heading=definition.name, is_number=True) for definition in DEFINITIONS]
    return element(
        "section",
        element("h2", "The same runs by other definitions"),
        draw_table(columns, rows, caption="Samples per second from the same step logs; small: difference from ours."),
        element("dl", *_formulas(), class_="formulas"),
        id="definitions",
    )


def _row(label: str, results: Sequence[RunResult]) -> list[str]:
    own = _mean([each.samples_per_second for each in results])
    others = (_mean([_rate(each, definition.key) for each in results]) for definition in DEFINITIONS)
    return [label, element("strong", number_text(own)), *(_compared(value, own) for value in others)]


def _formulas() -> list[Markup]:
    ours = (
        "Traindyno",
        "samples of all ranks in the steady window ÷ its wall time on the slowest rank, waiting included",
    )
    others = ((definition.name, f"{definition.source}: {definition.formula}") for definition in DEFINITIONS)
    mlperf = ("MLPerf", "defines no throughput: it measures the time to a quality target")
    return [element("div", element("dt", name), element("dd", formula)) for name, formula in (ours, *others, mlperf)]


def _rate(result: RunResult, key: str) -> float | None:
    rates = result.measured.definitions if result.measured else ()
    return next((rate.samples_per_second for rate in rates if rate.key == key), None)


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value]
    return estimate(known).mean if known and len(known) == len(values) else None


def _compared(value: float | None, own: float | None) -> Markup:
    if value is None or own is None:
        return element("span", "–", class_="absent", title="the runs are too short for this definition")
    return join(number_text(value), element("small", change_text(value / own)))
