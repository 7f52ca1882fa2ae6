"""What a run took and cost until an evaluation reached a target: time and money to quality."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from traindyno.core.costs.projection import cost_usd, measured_attempt, read_job_time
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.step_log.content import Evaluation
from traindyno.core.suite.suite import Target


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """The first evaluation that reached the target, after ``step`` steps.

    ``seconds`` is wall clock from the creation of the job to the end of that evaluation, as MLPerf and DAWNBench count
    the time to quality; nothing is interpolated between evaluations. ``usd`` is what SageMaker bills until then; None
    where the price or the billed share is unknown.
    """

    step: int
    seconds: float
    usd: Decimal | None


def reach_target(result: RunResult, target: Target) -> Reached | None:
    """None where no evaluation reached the target, or the times of the job are unknown."""
    measured, attempt = result.measured, measured_attempt(result)
    job_time = None if attempt is None else read_job_time(attempt)
    if measured is None or measured.began_at is None or attempt is None or job_time is None:
        return None
    for evaluation, value in evaluated(measured.evaluations, target):
        if target.is_reached(value):
            trained = evaluation.time - measured.began_at
            billed = attempt.phase_seconds.get("downloading", 0.0) + trained
            share = job_time.billable_share
            count, price = result.run.cell.settings.instance_count, result.price.usd_per_instance_hour
            return Reached(
                step=evaluation.step,
                seconds=job_time.before_training + trained,
                usd=None if share is None else cost_usd(billed * share, count, price),
            )
    return None


def evaluated(evaluations: Sequence[Evaluation], target: Target) -> list[tuple[Evaluation, float]]:
    """The evaluations that measured the target's quality, each with its value."""
    found = ((each, each.metrics.get(target.quality.value)) for each in evaluations)
    return [(each, value) for each, value in found if value is not None]
