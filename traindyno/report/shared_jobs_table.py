"""Jobs that several runs shared: their runs in order, with their own time and their parts of the bill."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from traindyno.core.costs.projection import known_cost_usd
from traindyno.core.costs.quantity_text import UNKNOWN, place_text, seconds_text, usd_text
from traindyno.core.jobs.attempt import Attempt
from traindyno.core.jobs.run_share import RunShare
from traindyno.core.measurement.run_result import RunResult
from traindyno.report.markup import Markup, element, join
from traindyno.report.table import Column, breakable, draw_table

COLUMNS = [
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
        draw_table(COLUMNS, rows, caption="The runs of each job, in their order. Their parts add up to its bill."),
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
            _outcome(each.attempt),
            seconds_text(each.share.own_seconds) if each.share.has_begun else "–",
            seconds_text(each.attempt.billable_seconds),
            _cost(each, each.attempt.billable_seconds),
        ]


def _cost(each: _Carried, seconds: float | None) -> str:
    if seconds is None:
        return UNKNOWN
    price, count = each.result.price.usd_per_instance_hour, each.result.run.cell.settings.instance_count
    return usd_text(known_cost_usd(seconds, count, price))


def _outcome(attempt: Attempt) -> str:
    """The error's name if the next job carried on."""
    return attempt.outcome.value.replace("_", " ") if attempt.outcome else attempt.error or UNKNOWN
