"""What the row of a finished run and a table of runs say of it, from its result."""

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

from traindyno.core.costs.projection import measured_attempt, paid_usd, project_run, read_job_time
from traindyno.core.jobs.run_summary import RunSummary, RunTime
from traindyno.core.measurement.loss_parity import late_loss
from traindyno.core.measurement.run_phases import script_phases
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.suite.choices import Purchase, Quality
from traindyno.core.verdict.quantity import last_value, projected_seconds, tokens_per_second


def run_time(result: RunResult) -> RunTime:
    """The overhead is waiting, starting, data, image and upload: the measured job's time beside the
    run itself, by its share or its step log.
    """
    attempt = measured_attempt(result)
    overhead = None
    billed = None
    time = (
        read_job_time(attempt, is_spot=result.price.purchase == Purchase.SPOT) if attempt else None
    )
    if attempt is not None and time is not None:
        own = (
            attempt.share.own_seconds
            if attempt.share
            else sum(script_phases(result.phases_seconds).values())
        )
        overhead = max(0.0, time.wall - own) if own else None
        if own and time.billable_share is not None:
            billed = max(0.0, time.training - own) * time.billable_share
    alone = alone_billable_seconds(result)
    return RunTime(
        billable_seconds=result.billable_seconds if alone is None else alone,
        seconds=sum(result.phases_seconds.values()),
        overhead_seconds=overhead,
        overhead_billable_seconds=billed,
    )


def alone_billable_seconds(result: RunResult) -> float | None:
    """Billable time of all attempts as if their jobs had this run only; None if any is unknown."""
    times = [read_job_time(attempt) for attempt in result.attempts]
    billed = [None if time is None else time.billable for time in times]
    return (
        None
        if not billed or None in billed
        else sum(seconds for seconds in billed if seconds is not None)
    )


#: The columns of a table of runs; unknown values are None. Rates are those of all devices together.
RUN_COLUMNS: Mapping[str, Callable[[RunResult], Any]] = {
    "run_id": lambda each: each.run.run_id,
    "execution_id": lambda each: each.run.execution_id,
    "cell_id": lambda each: each.run.cell.cell_id,
    "cell_label": lambda each: each.run.cell.label,
    "trial": lambda each: each.run.trial,
    "outcome": lambda each: each.outcome,
    "message": lambda each: each.message,
    "attempts": lambda each: len(each.attempts),
    "job_name": lambda each: each.attempts[-1].job_name if each.attempts else None,
    "instance": lambda each: each.run.cell.settings.instance,
    "instance_count": lambda each: each.run.cell.settings.instance_count,
    "samples_per_second": lambda each: each.samples_per_second,
    "tokens_per_second": tokens_per_second,
    "mean_step_seconds": lambda each: each.throughput and each.throughput.step_times.mean_seconds,
    "steady_steps": lambda each: each.throughput and each.throughput.steps,
    "warmup_steps": lambda each: each.measured and each.measured.steady_state.warmup_steps,
    "is_steady": lambda each: each.measured and each.measured.steady_state.is_reached,
    "billable_seconds": lambda each: each.billable_seconds,
    "alone_billable_seconds": alone_billable_seconds,
    "job_seconds": lambda each: run_time(each).seconds,
    "overhead_seconds": lambda each: run_time(each).overhead_seconds,
    "overhead_billable_seconds": lambda each: run_time(each).overhead_billable_seconds,
    "cost_usd": paid_usd,
    "accuracy": lambda each: last_value(each, Quality.ACCURACY),
    "evaluation_loss": lambda each: last_value(each, Quality.LOSS),
    "late_loss": late_loss,
    "projected_seconds": projected_seconds,
    "projected_usd": lambda each: (projection := project_run(each)) and projection.usd,
    "is_simulated": lambda each: each.is_simulated,
    "is_contended": lambda each: each.measured is not None and each.measured.is_contended,
    "hosts": lambda each: each.environment and (" ".join(each.environment.host_ids) or None),
    "data_wait_share": lambda each: each.throughput and each.throughput.data_wait_share,
    "seed": lambda each: each.seed,
    "outpaced_by": lambda each: each.bound and each.bound.by,
    "least_ratio": lambda each: each.bound and each.bound.least_ratio,
}


def run_columns(result: RunResult) -> dict[str, Any]:
    return {name: value(result) for name, value in RUN_COLUMNS.items()}


def summarise(result: RunResult) -> RunSummary:
    """A field that has the name of a column has its value."""
    row = run_columns(result)
    steps = row["warmup_steps"] + row["steady_steps"] if row["steady_steps"] is not None else None
    same = {each.name: row[each.name] for each in fields(RunSummary) if each.name in row}
    return RunSummary(**same, time=run_time(result), steps=steps)
