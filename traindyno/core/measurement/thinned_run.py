"""The measurements of a thinned log, in the steps that were logged."""

from dataclasses import replace

from traindyno.core.measurement.measured_run import MeasuredRun, StepTimeline
from traindyno.core.measurement.recurrence import RecurringEvent
from traindyno.core.measurement.throughput import StepTimes, Throughput
from traindyno.core.step_log.step_table import StepTable


def in_logged_steps(measured: MeasuredRun, table: StepTable) -> MeasuredRun:
    """``measured`` counts the steps of the table, each of which is ``stride`` logged ones.

    Rates, work and times of the run stay as they are. Quantiles are those of ``stride`` steps together.
    """
    stride, first = table.stride, measured.steady_state.warmup_steps
    if stride == 1:
        return measured
    return replace(
        measured,
        steady_state=replace(measured.steady_state, warmup_steps=table.count_logged(0, first)),
        throughput=_throughput(measured.throughput, table.count_logged(first), stride) if measured.throughput else None,
        timeline=_timeline(measured.timeline, stride),
        recurring=tuple(_recurring(event, stride) for event in measured.recurring),
    )


def _throughput(throughput: Throughput, steps: int, stride: int) -> Throughput:
    times = throughput.step_times
    return replace(
        throughput,
        steps=steps,
        steps_per_second=steps / throughput.seconds,
        samples_per_step=None if throughput.samples_per_step is None else throughput.samples_per_step // stride,
        most_samples_per_step=None,
        step_times=StepTimes(
            mean_seconds=times.mean_seconds / stride,
            p50_seconds=times.p50_seconds / stride,
            p90_seconds=times.p90_seconds / stride,
            p99_seconds=times.p99_seconds / stride,
            least_seconds=times.least_seconds / stride,
            most_seconds=times.most_seconds / stride,
        ),
    )


def _timeline(timeline: StepTimeline, stride: int) -> StepTimeline:
    seconds = tuple(each / stride for each in timeline.seconds)
    return replace(timeline, stride=timeline.stride * stride, seconds=seconds)


def _recurring(event: RecurringEvent, stride: int) -> RecurringEvent:
    return replace(
        event, steps_between=event.steps_between * stride, variance_per_step=event.variance_per_step / stride**2
    )
