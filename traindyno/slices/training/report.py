"""What a training was projected to take, beside what it took: for its report, its card and
`traindyno list`.
"""

from collections.abc import Iterator

from traindyno.core.costs.projected_actual import ProjectedActual, job_seconds, job_usd
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.verdict.report_data import Report
from traindyno.report.markup import Markup
from traindyno.report.projected_section import draw_projected
from traindyno.slices.training.plan import Projected, Training, parse_training, total, training_key
from traindyno.store.results import load_results
from traindyno.store.results_bucket import ResultsBucket

PART = "training"


def compared(training: Training, result: RunResult) -> tuple[ProjectedActual, ...]:
    """Projected and actual time and cost of the jobs of all its executions.

    Each job counts from its creation to the end of the last job of its execution.
    """
    before = training.projected or Projected()
    measured = result.measured
    seconds = total(training.earlier_seconds, job_seconds([result]))
    usd = total(training.earlier_usd, job_usd([result]))
    peak = measured.peak_memory_bytes if measured else None
    utilization = result.throughput.model_flops_utilization if result.throughput else None
    memory = ProjectedActual(quantity="memory", projected=before.peak_memory_bytes, actual=peak)
    mfu = ProjectedActual(
        quantity="MFU", projected=before.model_flops_utilization, actual=utilization
    )
    return (
        *compared_time_and_cost(before, seconds, usd),
        memory,
        *(() if utilization is None else (mfu,)),
    )


def compared_time_and_cost(
    before: Projected, seconds: float | None, usd: float | None
) -> tuple[ProjectedActual, ProjectedActual]:
    return (
        ProjectedActual(
            quantity="time",
            projected=before.seconds,
            interval=before.seconds_interval,
            actual=seconds,
        ),
        ProjectedActual(
            quantity="cost", projected=before.usd, interval=before.usd_interval, actual=usd
        ),
    )


def read_compared(bucket: ResultsBucket, execution_id: str) -> Iterator[ProjectedActual]:
    """Projected and actual figures of a training.

    There are none if the execution is no training, was not projected, or has not trained the whole
    workload.
    """
    training = bucket.find_as(training_key(execution_id), parse_training)
    if training is not None and training.projected is not None:
        for result in load_results(bucket, execution_id):
            if result.outcome is Outcome.COMPLETED:
                yield from (
                    figure for figure in compared(training, result) if figure.ratio is not None
                )


def draw_training(report: Report) -> Markup | None:
    caption = (
        "The verdict's projection of the whole workload, and this training with the executions "
        "that it continues."
    )
    return draw_projected(report, PART, "Projected and actual", caption)
