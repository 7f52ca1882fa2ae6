"""A finished run as one flat record: for lists, progress displays and the report's raw data."""

from dataclasses import dataclass
from decimal import Decimal

from traindyno.core.jobs.outcome import Outcome


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
