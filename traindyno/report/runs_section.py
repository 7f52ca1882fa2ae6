"""Every run with its outcome, and the last message of failed runs."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from traindyno.core.costs.projection import known_cost_usd, paid_usd
from traindyno.core.costs.quantity_text import UNKNOWN, number_text, place_text, seconds_text, start_text, usd_text
from traindyno.core.jobs.attempt import Attempt, RunShare
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.verdict.cell_trials import is_measured
from traindyno.core.verdict.report_data import Report
from traindyno.report.markup import Column, Markup, breakable, draw_table, element, join

_SHARED_COLUMNS = [
    Column(heading="Job"),
    Column(heading="Place"),
    Column(heading="Run"),
    Column(heading="Ended as"),
    Column(heading="Own time", is_number=True, explanation="from its begin to the end of its clean-up"),
    Column(heading="Billed", is_number=True, explanation="its own time, and an equal part of the rest of the job"),
    Column(heading="Cost", is_number=True),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Carried:
    """A run in one of the jobs that carried it."""

    result: RunResult
    attempt: Attempt
    share: RunShare


def draw_shared_jobs(results: Sequence[RunResult]) -> Markup | None:
    """None if each run had a job of its own."""
    jobs = _by_job(results)
    if not jobs:
        return None
    rows = [row for name in sorted(jobs) for row in _rows(name, jobs[name])]
    return join(
        element("h3", "Jobs that runs shared"),
        draw_table(
            _SHARED_COLUMNS, rows, caption="The runs of each job, in their order. Their parts add up to its bill."
        ),
    )


def _by_job(results: Sequence[RunResult]) -> dict[str, list[_Carried]]:
    jobs: dict[str, list[_Carried]] = {}
    for result in results:
        for attempt in result.attempts:
            if attempt.share is not None:
                carried = _Carried(result=result, attempt=attempt, share=attempt.share)
                jobs.setdefault(attempt.job_name, []).append(carried)
    return jobs


def _rows(job_name: str, carried: Sequence[_Carried]) -> Iterator[list[str | None]]:
    billed = [each.attempt.billable_seconds for each in carried]
    whole = None if None in billed else round(sum(value for value in billed if value is not None), 3)
    ordered = sorted(carried, key=lambda each: (not each.share.place, each.share.place))
    first = ordered[0].share
    around = f"start {seconds_text(first.start_seconds)}, end {seconds_text(first.end_seconds)}"
    yield [job_name, "all", around, "–", "–", seconds_text(whole), _cost(ordered[0], whole)]
    for each in ordered:
        yield [
            job_name,
            place_text(each.share.place, each.share.runs),
            breakable(f"{each.result.run.cell.label}, trial {each.result.run.trial}"),
            each.attempt.outcome.value.replace("_", " ") if each.attempt.outcome else each.attempt.error or UNKNOWN,
            seconds_text(each.share.own_seconds) if each.share.has_begun else "–",
            seconds_text(each.attempt.billable_seconds),
            _cost(each, each.attempt.billable_seconds),
        ]


def _cost(each: _Carried, seconds: float | None) -> str:
    if seconds is None:
        return UNKNOWN
    price, count = each.result.price.usd_per_instance_hour, each.result.run.cell.settings.instance_count
    return usd_text(known_cost_usd(seconds, count, price))


START = "Start"
_RUN_COLUMNS = [
    Column(heading="Run"),
    Column(heading="Outcome"),
    Column(heading="Attempts", is_number=True),
    Column(heading=START, explanation="warm: on the instances of an earlier job (warm pool)"),
    Column(heading="Warm-up", is_number=True, explanation="steps before the steady window"),
    Column(heading="Steady", is_number=True, explanation="steps in the steady window"),
    Column(heading="Samples/s", is_number=True),
    Column(heading="Step, median", is_number=True),
    Column(heading="Step, p99", is_number=True),
    Column(heading="Loss, last", is_number=True),
    Column(heading="Billed", is_number=True, explanation="wall time of each instance"),
    Column(heading="Cost", is_number=True),
]


def draw_runs(report: Report) -> Markup:
    failed = [each for each in report.results if each.outcome not in (Outcome.COMPLETED, Outcome.OUTPACED)]
    completed = [each for each in report.results if each.outcome is Outcome.COMPLETED]
    noted = [each for each in completed if each.message or each.step_log_problems]
    return element(
        "section",
        element("h2", "Runs"),
        _table(report.results),
        draw_shared_jobs(report.results),
        *(_failure(alike) for alike in _group_alike(failed)),
        _problems(noted),
        id="runs",
    )


def _table(results: Sequence[RunResult]) -> Markup:
    """The table of runs; without a warm pool, it has no column of starts."""
    rows = [_row(each) for each in results]
    keeps_warm = any(each.started_warm is not None for each in results)
    shown = [index for index, column in enumerate(_RUN_COLUMNS) if keeps_warm or column.heading != START]
    return draw_table(
        [_RUN_COLUMNS[index] for index in shown],
        [[row[index] for index in shown] for row in rows],
        caption="One trial of one cell each.",
    )


def _row(result: RunResult) -> list[str | None]:
    measured = result.measured
    throughput = measured.throughput if measured else None
    rate = throughput if is_measured(result) else None
    return [
        join(breakable(f"{result.run.cell.label}, trial {result.run.trial}"), element("small", _run_text(result))),
        join(
            element("span", _outcome(result), class_=f"outcome {_tone(result)}"),
            element("span", "simulated", class_="badge") if result.is_simulated else None,
        ),
        str(len(result.attempts)),
        start_text(result.started_warm),
        str(measured.steady_state.warmup_steps) if measured else "–",
        str(throughput.steps) if throughput else "–",
        number_text(rate.samples_per_second) if rate else "–",
        seconds_text(rate.step_times.p50_seconds) if rate else "–",
        seconds_text(rate.step_times.p99_seconds) if rate else "–",
        number_text(measured.loss.last) if measured and measured.loss.last is not None else "–",
        seconds_text(result.billable_seconds),
        usd_text(paid_usd(result)),
    ]


def _run_text(result: RunResult) -> str:
    """Its id, its seed, and its place in the last job if it shared one."""
    seed = "" if result.run.seed is None else f", seed {result.run.seed}"
    unknown = " not shown by the script" if seed and result.seed is None else ""
    last = result.attempts[-1] if result.attempts else None
    place = place_text(last.share.place, last.share.runs) if last and last.share else None
    job = f", {place} in job {last.job_name}" if last and place else ""
    return f"{result.run.run_id}{seed}{unknown}{job}"


def _outcome(result: RunResult) -> str:
    text = result.outcome.value.replace("_", " ")
    if result.bound:
        return f"{text}: {result.bound.text}"
    return f"{text} at the target" if result.measured and result.measured.ended_at_target else text


def _tone(result: RunResult) -> str:
    if result.outcome is Outcome.OUTPACED:
        return ""
    return "good" if result.outcome is Outcome.COMPLETED else "bad"


def _group_alike(results: Sequence[RunResult]) -> Iterator[list[RunResult]]:
    """Equal messages of one cell's trials appear once."""
    groups: dict[tuple[object, ...], list[RunResult]] = {}
    for each in results:
        key = (each.run.cell.cell_id, each.outcome, each.message, each.log_tail)
        groups.setdefault(key, []).append(each)
    yield from groups.values()


def _failure(alike: Sequence[RunResult]) -> Markup:
    first = alike[0]
    trials = ", ".join(str(each.run.trial) for each in alike)
    return element(
        "article",
        element(
            "h3", f"{first.run.cell.label}, {'trial' if len(alike) == 1 else 'trials'} {trials}: {_outcome(first)}"
        ),
        element("p", first.message or "The run has no message."),
        element("pre", "\n".join(first.log_tail), tabindex=0) if first.log_tail else None,
        class_="failure",
    )


def _problems(results: Sequence[RunResult]) -> Markup | None:
    if not results:
        return None
    texts = (
        (each.run.run_id, dict.fromkeys(filter(None, (each.message, *each.step_log_problems)))) for each in results
    )
    items = (element("li", f"{run_id}: {text}") for run_id, found in texts for text in found)
    return element("details", element("summary", "What is doubtful about completed runs"), element("ul", *items))
