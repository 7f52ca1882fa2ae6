"""Work over time: the samples of a step ÷ the long-run time of a step on the slowest rank."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median, median_low, quantiles

from traindyno.core.measurement.step_time import StepTime, measure_step_time
from traindyno.core.step_log.step_table import StepTable


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTimes:
    """Begin-to-end seconds of a step on its slowest rank, over the steady window."""

    mean_seconds: float
    p50_seconds: float
    p99_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Throughput:
    """The rate of the steady window, of all devices of the cell together."""

    steps: int
    #: Time of the steps on the slowest rank, with recurring events at their rate, without one-time
    #: events.
    seconds: float
    samples: int
    #: Tokens of the window; None if the log has no tokens.
    tokens: int | None
    samples_per_second: float
    tokens_per_second: float | None
    steps_per_second: float
    data_wait_share: float
    step_times: StepTimes
    #: Utilization; None if the model's FLOPS or the device's peak are unknown.
    model_flops_utilization: float | None
    #: Share of ``seconds`` that recurring events take: checkpoints, evaluation, stalls.
    recurring_share: float
    #: Median over all ranks together, because an epoch's last step may have fewer.
    samples_per_step: int
    #: Samples of the step with the most.
    most_samples_per_step: int


def measure_table(table: StepTable, *, warmup_steps: int | None) -> StepTime:
    """The step time of a table's steps.

    Without ``warmup_steps``, the steady window is found from the step times.
    """
    return measure_step_time(
        table.step_seconds,
        phases=table.phases_by_interval,
        names_after_steps=table.phases_after_steps(),
        warmup_steps=warmup_steps,
        numbers=table.numbers,
    )


def measure_throughput(
    table: StepTable,
    step_time: StepTime,
    *,
    device_count: int,
    flops_per_token: float | None,
    peak_flops_per_device: float | None,
) -> Throughput | None:
    """Rates over the steps after warm-up; None if there are none, or no samples in them.

    Waiting for data is time.
    """
    first = step_time.steady_state.warmup_steps
    last = len(table) - 1
    if first > last:
        return None
    # below the sum of the slowest ranks' intervals if ranks don't wait for each other at each step
    total = sum(table.interval_seconds[first:])
    core_seconds = step_time.core_seconds * (
        table.wall_seconds(first, last) / total if total > 0 else 1.0
    )
    seconds = (core_seconds + step_time.recurring_seconds) * (last - first + 1)
    samples = sum(table.samples[first:])
    if seconds <= 0 or samples <= 0:
        return None
    tokens = sum(table.tokens[first:]) if table.tokens is not None else None
    tokens_per_second = tokens / seconds if tokens is not None else None
    utilization = None
    if (
        tokens_per_second is not None
        and flops_per_token is not None
        and peak_flops_per_device is not None
    ):
        utilization = tokens_per_second / device_count * flops_per_token / peak_flops_per_device
    return Throughput(
        steps=last - first + 1,
        seconds=seconds,
        samples=samples,
        tokens=tokens,
        samples_per_second=samples / seconds,
        tokens_per_second=tokens_per_second,
        steps_per_second=(last - first + 1) / seconds,
        data_wait_share=table.wait_share(first, last),
        step_times=summarize_step_times(table.slowest_seconds[first:]),
        model_flops_utilization=utilization,
        recurring_share=1 - core_seconds * (last - first + 1) / seconds,
        samples_per_step=median_low(table.samples[first:]),
        most_samples_per_step=max(table.samples[first:]),
    )


def summarize_step_times(step_seconds: Sequence[float]) -> StepTimes:
    p99 = (
        quantiles(step_seconds, n=100, method="inclusive")[-1]
        if len(step_seconds) > 1
        else step_seconds[0]
    )
    return StepTimes(
        mean_seconds=fmean(step_seconds), p50_seconds=median(step_seconds), p99_seconds=p99
    )
