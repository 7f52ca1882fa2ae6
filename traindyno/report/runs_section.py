"""Every run with its outcome, and what the failed ones said last."""

from collections.abc import Sequence

from traindyno.core.outcome import Outcome
from traindyno.core.quantity_text import number_text, seconds_text, usd_text
from traindyno.core.report_data import Report
from traindyno.core.run_result import RunResult
from traindyno.report.markup import Markup, element, join
from traindyno.report.table import Column, draw_table

COLUMNS = [
    Column(heading="Run"),
    Column(heading="Cell"),
    Column(heading="Outcome"),
    Column(heading="Attempts", is_number=True),
    Column(heading="Steady steps", is_number=True),
    Column(heading="Samples/s", is_number=True),
    Column(heading="Step, median", is_number=True),
    Column(heading="Step, p99", is_number=True),
    Column(heading="Loss, last", is_number=True),
    Column(heading="Billed", is_number=True),
    Column(heading="Cost", is_number=True),
]


def draw_runs(report: Report) -> Markup:
    failed = [each for each in report.results if each.outcome is not Outcome.COMPLETED]
    noted = [each for each in report.results if each.outcome is Outcome.COMPLETED and each.step_log_problems]
    return element(
        "section",
        element("h2", "Runs"),
        draw_table(COLUMNS, [_row(each) for each in report.results], caption="One trial of one cell each."),
        *(_failure(each) for each in failed),
        _problems(noted),
        id="runs",
    )


def _row(result: RunResult) -> list[str | None]:
    throughput = result.measured.throughput if result.measured else None
    return [
        result.run.run_id,
        f"{result.run.cell.label}, trial {result.run.trial}",
        join(
            element("span", result.outcome.value.replace("_", " "), class_=f"outcome {_tone(result)}"),
            element("span", "simulated", class_="badge") if result.is_simulated else None,
        ),
        str(len(result.attempts)),
        str(throughput.steps) if throughput else "–",
        number_text(throughput.samples_per_second) if throughput else "–",
        seconds_text(throughput.step_times.p50_seconds) if throughput else "–",
        seconds_text(throughput.step_times.p99_seconds) if throughput else "–",
        number_text(result.measured.loss.last) if result.measured and result.measured.loss.last is not None else "–",
        seconds_text(result.billable_seconds),
        usd_text(result.cost_usd),
    ]


def _tone(result: RunResult) -> str:
    return "good" if result.outcome is Outcome.COMPLETED else "bad"


def _failure(result: RunResult) -> Markup:
    return element(
        "article",
        element("h3", f"{result.run.run_id}: {result.outcome.value.replace('_', ' ')}"),
        element("p", result.message or "No message was left."),
        element("pre", "\n".join(result.log_tail), tabindex=0) if result.log_tail else None,
        class_="failure",
    )


def _problems(results: Sequence[RunResult]) -> Markup | None:
    if not results:
        return None
    items = (element("li", f"{each.run.run_id}: {problem}") for each in results for problem in each.step_log_problems)
    return element("details", element("summary", "Gaps in the step logs of completed runs"), element("ul", *items))
