"""Fewer step times and losses per run for a report with many runs, with five digits, so that its file stays small."""

from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean
from typing import TypeVar

from traindyno.core.measurement.loss_curve import LossCurve, LossPoint
from traindyno.core.measurement.measured_run import StepTimeline
from traindyno.core.measurement.run_result import RunResult

STEP_TIMES_IN_ALL = 30_000
LOSS_POINTS_IN_ALL = 20_000
FEWEST_POINTS = 10

Value = TypeVar("Value")


def downsample_results(results: Sequence[RunResult]) -> tuple[RunResult, ...]:
    """Each run gets an equal share of the points that a report holds; none if the share is below 10 points."""
    share = max(1, len(results))
    step_times, loss_points = STEP_TIMES_IN_ALL // share, LOSS_POINTS_IN_ALL // share
    return tuple(_downsample(result, step_times=step_times, loss_points=loss_points) for result in results)


def _downsample(result: RunResult, *, step_times: int, loss_points: int) -> RunResult:
    measured = result.measured
    if measured is None:
        return result
    timeline, loss = downsample_timeline(measured.timeline, step_times), downsample_loss(measured.loss, loss_points)
    timeline = replace(timeline, seconds=tuple(map(_five_digits, timeline.seconds)))
    loss = replace(loss, points=tuple(map(_rounded, loss.points)))
    return replace(result, measured=replace(measured, timeline=timeline, loss=loss))


def _rounded(point: LossPoint) -> LossPoint:
    return replace(point, loss=_five_digits(point.loss), seconds=_five_digits(point.seconds))


def _five_digits(value: float) -> float:
    return float(f"{value:.5g}")


def downsample_timeline(timeline: StepTimeline, most: int) -> StepTimeline:
    if len(timeline.seconds) <= most:
        return timeline
    if most < FEWEST_POINTS:
        return replace(timeline, seconds=())
    stride = -(-len(timeline.seconds) // most)
    seconds = tuple(fmean(chunk) for chunk in _chunks(timeline.seconds, stride))
    return replace(timeline, stride=timeline.stride * stride, seconds=seconds)


def downsample_loss(loss: LossCurve, most: int) -> LossCurve:
    if len(loss.points) <= most:
        return loss
    if most < FEWEST_POINTS:
        return replace(loss, points=())
    stride = -(-len(loss.points) // most)
    return replace(loss, points=tuple(_merge(chunk) for chunk in _chunks(loss.points, stride)))


def _merge(points: Sequence[LossPoint]) -> LossPoint:
    steps = sum(point.steps for point in points)
    mean = sum(point.loss * point.steps for point in points) / steps
    return replace(points[-1], steps=steps, loss=mean)


def _chunks(values: Sequence[Value], size: int) -> list[Sequence[Value]]:
    return [values[begin : begin + size] for begin in range(0, len(values), size)]
