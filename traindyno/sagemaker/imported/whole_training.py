"""What the whole training of an imported job takes and costs, by the job's own step log."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from traindyno.core.costs.projection import JobTime, Projection, project
from traindyno.core.measurement.measured_run import MeasuredRun, measure_run
from traindyno.core.step_log.content import StepLog
from traindyno.core.step_log.step_table import tabulate_steps
from traindyno.sagemaker.job_description import has_ended, read_billed, read_job_end


def step_log_uri(job: Mapping[str, Any]) -> str | None:
    """The S3 folder with the job's step log, in a folder of the job's name; None for a job without checkpoints."""
    checkpoints = job.get("CheckpointConfig", {}).get("S3Uri")
    return f"{checkpoints.rstrip('/')}/step_log/" if checkpoints else None


def measure_log(step_log: StepLog) -> MeasuredRun | None:
    """As a run's log is measured; None without a step, without a rate, or with more steps than are read."""
    session = step_log.measured
    if session is None or any(process.steps.is_full for process in session.processes):
        return None
    table = tabulate_steps(session)
    measured = measure_run(step_log, session, table, warmup_steps=None, peak_flops_per_device=None)
    return measured if measured.throughput is not None else None


def project_training(
    job: Mapping[str, Any], measured: MeasuredRun, *, examples: int, usd_per_instance_hour: Decimal | None
) -> Projection | None:
    """The job's own time beside its steady steps, and the rest of the examples at its rate. None for a job whose times
    are not known.
    """
    time = _job_time(job)
    if time is None or measured.throughput is None:
        return None
    return project(
        examples=examples,
        samples_per_second=measured.throughput.samples_per_second,
        samples_before_steady=measured.samples_before_steady,
        steady_seconds=measured.steady_seconds,
        job_time=time,
        instance_count=read_billed(job)[1],
        usd_per_instance_hour=usd_per_instance_hour,
    )


def _job_time(job: Mapping[str, Any]) -> JobTime | None:
    if not has_ended(job):
        return None
    end = read_job_end(job)
    if end.ended_at is None or end.training_seconds is None:
        return None
    wall = end.ended_at - (end.phases[0].begin if end.phases else end.created_at)
    return JobTime(
        wall=wall,
        before_training=max(0.0, wall - end.training_seconds),
        training=end.training_seconds,
        billable=end.billable_seconds,
        is_spot=bool(job.get("EnableManagedSpotTraining")),
    )
