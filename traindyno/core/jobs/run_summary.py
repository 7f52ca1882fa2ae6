"""A finished run as one flat record: for lists, progress displays and the report's raw data."""

from dataclasses import dataclass
from decimal import Decimal

from traindyno.core.jobs.outcome import Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSummary:
    """Unknown values are None."""

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
    #: Rates are those of all devices together.
    samples_per_second: float | None = None
    tokens_per_second: float | None = None
    mean_step_seconds: float | None = None
    steady_steps: int | None = None
    warmup_steps: int | None = None
    is_steady: bool | None = None
    #: The billed time of all attempts, on one instance each; of shared jobs, the run's part.
    billable_seconds: float | None = None
    #: The same if no job had been shared.
    alone_billable_seconds: float | None = None
    #: The time from the creation of each job to its end, billed or not, as if no job had been shared.
    job_seconds: float
    #: The part of the measured job's time that a job has once, however many runs it carries; and what is billed of it.
    overhead_seconds: float | None = None
    overhead_billable_seconds: float | None = None
    cost_usd: Decimal | None = None
    #: ``accuracy`` and ``evaluation_loss`` are the last evaluation's.
    accuracy: float | None = None
    evaluation_loss: float | None = None
    #: The training loss of the second half.
    late_loss: float | None = None
    #: ``projected_seconds`` and ``projected_usd`` are for the whole workload.
    projected_seconds: float | None = None
    projected_usd: Decimal | None = None
    is_simulated: bool
    is_contended: bool = False
    #: The machines, all of them as one text.
    hosts: str | None = None
    data_wait_share: float | None = None
    #: With which it shows that it trained.
    seed: int | None = None
    #: Of a run that was outpaced: the run of its job that was ahead, and the least ratio of its time to that run's.
    outpaced_by: str | None = None
    least_ratio: float | None = None
    #: After the run's own work.
    probe_seconds: float | None = None
