"""A finished run as one flat record: for lists, progress displays and the report's raw data."""

from dataclasses import dataclass
from decimal import Decimal
from typing import Self

from traindyno.core.costs.projection import paid_usd, project_run
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.measurement.loss_parity import late_loss
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.suite.choices import Quality
from traindyno.core.verdict.cell_quality import last_values
from traindyno.core.verdict.repeats import is_contended


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSummary:
    """What can't be known of the run is None. ``billable_seconds`` are of all attempts, on one instance each.

    ``accuracy`` and ``evaluation_loss`` are the last evaluation's; ``late_loss`` is the training loss of the second
    half. ``job_seconds``: from the creation of each job to its end, billed or not. ``projected_…`` are for the whole
    workload. ``hosts`` names the machines, all of them as one.
    """

    run_id: str
    execution_id: str
    cell_id: str
    cell_label: str
    trial: int
    outcome: Outcome
    message: str | None = None
    attempts: int
    job_name: str | None = None
    instance: str
    instance_count: int
    samples_per_second: float | None = None
    tokens_per_second: float | None = None
    mean_step_seconds: float | None = None
    steady_steps: int | None = None
    warmup_steps: int | None = None
    started_warm: bool | None = None
    is_steady: bool | None = None
    billable_seconds: float | None = None
    job_seconds: float
    cost_usd: Decimal | None = None
    accuracy: float | None = None
    evaluation_loss: float | None = None
    late_loss: float | None = None
    projected_seconds: float | None = None
    projected_usd: Decimal | None = None
    is_simulated: bool
    is_contended: bool = False
    hosts: str | None = None

    @classmethod
    def from_result(cls, result: RunResult) -> Self:
        run, projection = result.run, project_run(result)
        measured = result.measured
        throughput = measured.throughput if measured else None
        return cls(
            run_id=run.run_id,
            execution_id=run.execution_id,
            cell_id=run.cell.cell_id,
            cell_label=run.cell.label,
            trial=run.trial,
            outcome=result.outcome,
            message=result.message,
            attempts=len(result.attempts),
            job_name=result.attempts[-1].job_name if result.attempts else None,
            instance=run.cell.settings.instance,
            instance_count=run.cell.settings.instance_count,
            samples_per_second=throughput.samples_per_second if throughput else None,
            tokens_per_second=throughput.tokens_per_second if throughput else None,
            mean_step_seconds=throughput.step_times.mean_seconds if throughput else None,
            steady_steps=throughput.steps if throughput else None,
            warmup_steps=measured.steady_state.warmup_steps if measured else None,
            started_warm=result.started_warm,
            is_steady=measured.steady_state.is_reached if measured else None,
            billable_seconds=result.billable_seconds,
            job_seconds=sum(result.phases_seconds.values()),
            cost_usd=paid_usd(result),
            accuracy=next(iter(last_values([result], Quality.ACCURACY)), None),
            evaluation_loss=next(iter(last_values([result], Quality.LOSS)), None),
            late_loss=late_loss(result),
            projected_seconds=projection.seconds if projection else None,
            projected_usd=projection.usd if projection else None,
            is_simulated=result.is_simulated,
            is_contended=is_contended(result),
            hosts=" ".join(result.environment.host_ids) or None if result.environment else None,
        )
