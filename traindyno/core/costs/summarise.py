"""What the row of a finished run and a table of runs say of it, from its result."""

from decimal import Decimal
from typing import TypedDict

from traindyno.core.costs.projection import measured_attempt, paid_usd, project_run, read_job_time
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.jobs.run_summary import RunSummary, RunTime
from traindyno.core.measurement.loss_parity import late_loss
from traindyno.core.measurement.run_phases import script_phases
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.suite.choices import Purchase, Quality


class RunColumns(TypedDict):
    """A row of a table of runs; None is unknown. Rates are those of all devices together."""

    run_id: str
    execution_id: str
    cell_id: str
    cell_label: str
    trial: int
    outcome: Outcome
    message: str | None
    attempts: int
    job_name: str | None
    instance: str
    instance_count: int
    samples_per_second: float | None
    tokens_per_second: float | None
    mean_step_seconds: float | None
    steady_steps: int | None
    warmup_steps: int | None
    is_steady: bool | None
    billable_seconds: float | None
    alone_billable_seconds: float | None
    job_seconds: float
    overhead_seconds: float | None
    overhead_billable_seconds: float | None
    cost_usd: Decimal | None
    accuracy: float | None
    evaluation_loss: float | None
    late_loss: float | None
    projected_seconds: float | None
    projected_usd: Decimal | None
    is_simulated: bool
    is_contended: bool
    hosts: str | None
    data_wait_share: float | None
    seed: int | None
    outpaced_by: str | None
    least_ratio: float | None


RUN_COLUMNS = tuple(RunColumns.__annotations__)


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


def summarise(result: RunResult) -> RunSummary:
    run = result.run
    rate = result.throughput
    measured = result.measured
    projection = project_run(result)
    hosts = result.environment.host_ids if result.environment else ()
    warmup = measured.steady_state.warmup_steps if measured else None
    return RunSummary(
        execution_id=run.execution_id,
        cell_id=run.cell.cell_id,
        cell_label=run.cell.label,
        trial=run.trial,
        outcome=result.outcome,
        message=result.message,
        attempts=len(result.attempts),
        instance=run.cell.settings.instance,
        time=run_time(result),
        samples_per_second=result.samples_per_second,
        mean_step_seconds=rate.step_times.mean_seconds if rate else None,
        steps=(warmup or 0) + rate.steps if rate else None,
        projected_seconds=projection.seconds if projection else None,
        projected_usd=projection.usd if projection else None,
        is_simulated=result.is_simulated,
        is_contended=measured is not None and measured.is_contended,
        hosts=" ".join(hosts) or None,
        data_wait_share=rate.data_wait_share if rate else None,
    )


def run_columns(result: RunResult) -> RunColumns:
    summary = summarise(result)
    rate = result.throughput
    measured = result.measured
    return {
        "run_id": result.run.run_id,
        "execution_id": summary.execution_id,
        "cell_id": summary.cell_id,
        "cell_label": summary.cell_label,
        "trial": summary.trial,
        "outcome": summary.outcome,
        "message": summary.message,
        "attempts": summary.attempts,
        "job_name": result.attempts[-1].job_name if result.attempts else None,
        "instance": summary.instance,
        "instance_count": result.run.cell.settings.instance_count,
        "samples_per_second": summary.samples_per_second,
        "tokens_per_second": rate.tokens_per_second if rate else None,
        "mean_step_seconds": summary.mean_step_seconds,
        "steady_steps": rate.steps if rate else None,
        "warmup_steps": measured.steady_state.warmup_steps if measured else None,
        "is_steady": measured.steady_state.is_reached if measured else None,
        "billable_seconds": result.billable_seconds,
        "alone_billable_seconds": alone_billable_seconds(result),
        "job_seconds": summary.time.seconds,
        "overhead_seconds": summary.time.overhead_seconds,
        "overhead_billable_seconds": summary.time.overhead_billable_seconds,
        "cost_usd": paid_usd(result),
        "accuracy": result.last_value(Quality.ACCURACY),
        "evaluation_loss": result.last_value(Quality.LOSS),
        "late_loss": late_loss(result),
        "projected_seconds": summary.projected_seconds,
        "projected_usd": summary.projected_usd,
        "is_simulated": summary.is_simulated,
        "is_contended": summary.is_contended,
        "hosts": summary.hosts,
        "data_wait_share": summary.data_wait_share,
        "seed": result.seed,
        "outpaced_by": result.bound.by if result.bound else None,
        "least_ratio": result.bound.least_ratio if result.bound else None,
    }
