"""The jobs of a plan: which cells share one, and why a run has a job of its own."""

from collections.abc import Iterator
from typing import Any

from rich.table import Table

from traindyno.core.costs.quantity_text import UNKNOWN, seconds_text, usd_text
from traindyno.core.documents.stored import to_document
from traindyno.core.planning.job_terms import run_terms
from traindyno.core.planning.plan import Plan
from traindyno.core.planning.planned_jobs import PlannedJob, planned_jobs
from traindyno.core.suite.choices import Jobs
from traindyno.core.suite.suite import Suite

ORDER_NOTE = (
    "the order in a job is drawn for each execution, in a race's first job after the baseline that the suite names; "
    "the next job of the same cells has it reversed"
)


def jobs_of_plan(suite: Suite, planned: Plan) -> list[PlannedJob]:
    """Empty where each run has its own job by the suite's choice."""
    if suite.measurement.jobs is Jobs.SEPARATE:
        return []
    histories = {history.cell_id: history for history in planned.history}
    return planned_jobs(suite, planned.cells, planned.execution_id, histories)


def job_table(suite: Suite, planned: Plan) -> Table:
    table = Table(title="jobs", title_justify="left", pad_edge=False)
    table.add_column("jobs", justify="right")
    table.add_column("instances")
    table.add_column("runs", overflow="fold")
    table.add_column("at most", justify="right")
    table.add_column("one job at most", justify="right")
    table.add_column("alone because", overflow="fold")
    for cells in _rows(suite, planned):
        table.add_row(*cells)
    return table


def jobs_document(suite: Suite, planned: Plan) -> list[dict[str, Any]]:
    return [to_document(job) for job in jobs_of_plan(suite, planned)]


def _rows(suite: Suite, planned: Plan) -> Iterator[tuple[str, ...]]:
    prices = {lane.instance_type: lane.price for lane in planned.lanes}
    cells = {cell.cell_id: cell for cell in planned.cells}
    for job in jobs_of_plan(suite, planned):
        price, first = prices[job.instance], cells[job.cell_ids[0]]
        usd = run_terms(first.settings, suite).one_attempt_usd(price.usd_per_hour) if price else None
        labels = ", ".join(cells[cell_id].label for cell_id in job.cell_ids)
        yield (
            f"up to {job.count}" if job.is_further else str(job.count),
            f"{job.instance_count} × {job.instance}",
            _contenders_text(job, labels) if job.is_further else labels,
            seconds_text(job.longest_seconds),
            UNKNOWN if usd is None else usd_text(usd),
            job.why_alone or "",
        )


def _contenders_text(job: PlannedJob, labels: str) -> str:
    cells = labels if len(job.cell_ids) == 1 else f"up to {len(job.cell_ids)} cells"
    again = "once" if job.runs == 1 else "forward and backward" if len(job.cell_ids) > 1 else f"{job.runs} times"
    return f"again, if close behind the best one: {cells}, {again}"
