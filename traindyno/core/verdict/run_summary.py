"""A finished run in one flat row: for lists, progress displays and the report's raw data."""

from decimal import Decimal

from traindyno.core.costs.projection import paid_usd, project_run
from traindyno.core.measurement.run_result import RunResult


def summary_row(result: RunResult) -> dict[str, str | int | float | bool | Decimal | None]:
    """The flat row for the table: what lists and progress displays show without reading the result itself."""
    projection = project_run(result)
    throughput = result.measured.throughput if result.measured else None
    return {
        "run_id": result.run.run_id,
        "execution_id": result.run.execution_id,
        "cell_id": result.run.cell.cell_id,
        "cell_label": result.run.cell.label,
        "trial": result.run.trial,
        "outcome": result.outcome.value,
        "message": result.message,
        "attempts": len(result.attempts),
        "job_name": result.attempts[-1].job_name if result.attempts else None,
        "instance": result.run.cell.settings.instance,
        "instance_count": result.run.cell.settings.instance_count,
        "samples_per_second": throughput.samples_per_second if throughput else None,
        "tokens_per_second": throughput.tokens_per_second if throughput else None,
        "mean_step_seconds": throughput.step_times.mean_seconds if throughput else None,
        "steady_steps": throughput.steps if throughput else None,
        "warmup_steps": result.measured.steady_state.warmup_steps if result.measured else None,
        "started_warm": result.started_warm,
        "is_steady": result.measured.steady_state.is_reached if result.measured else None,
        "billable_seconds": result.billable_seconds,
        "job_seconds": sum(result.phases_seconds.values()),
        "cost_usd": paid_usd(result),
        "projected_seconds": projection.seconds if projection else None,
        "projected_usd": projection.usd if projection else None,
        "is_simulated": result.is_simulated,
    }
