"""The quantities by which cells are compared: rates, and the time, cost and instance hours of the
whole workload.
"""

from collections.abc import Callable
from dataclasses import dataclass

from traindyno.core.costs.projection import project_run
from traindyno.core.costs.to_target import reach_target
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.run.record import QualityTarget
from traindyno.core.suite.choices import Quality

Quantity = Callable[[RunResult], float | None]


def samples_per_second(result: RunResult) -> float | None:
    return result.samples_per_second


def tokens_per_second(result: RunResult) -> float | None:
    return result.throughput.tokens_per_second if result.throughput else None


def steps_per_second(result: RunResult) -> float | None:
    return result.throughput.steps_per_second if result.throughput else None


def training_seconds(result: RunResult) -> float | None:
    """Seconds to train the whole workload at the measured rate, without starting, loading and
    compiling.
    """
    return result.examples / result.samples_per_second if result.samples_per_second else None


def projected_seconds(result: RunResult) -> float | None:
    projection = project_run(result)
    return projection.seconds if projection else None


def projected_billable_seconds(result: RunResult) -> float | None:
    """Billed seconds of each instance for the whole workload."""
    projection = project_run(result)
    return projection.billable_seconds if projection else None


def projected_usd(result: RunResult) -> float | None:
    projection = project_run(result)
    return float(projection.usd) if projection and projection.usd is not None else None


def projected_instance_hours(result: RunResult) -> float | None:
    projection = project_run(result)
    return projection.instance_hours if projection else None


def last_value(result: RunResult, quality: Quality) -> float | None:
    """That of the last evaluation; None if it did not measure the quality."""
    evaluations = result.measured.evaluations if result.measured else ()
    return evaluations[-1].metrics.get(quality.value) if evaluations else None


#: A failed trial has to be paid again before the work is complete; so it has until a target is
#: reached.
PAID_AGAIN = (
    projected_seconds,
    projected_billable_seconds,
    projected_usd,
    projected_instance_hours,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToTarget:
    """Wall clock until an evaluation reached the target, or with ``is_money`` the billed cost until
    then.

    None for a run in which none did. Another seed gives another value, with the same times of the
    steps.
    """

    target: QualityTarget
    is_money: bool = False

    def __call__(self, result: RunResult) -> float | None:
        found = reach_target(result, self.target)
        if found is None or (self.is_money and found.usd is None):
            return None
        return float(found.usd or 0) if self.is_money else found.seconds


def resolution(quantity: Quantity, result: RunResult) -> float:
    """The share of the value by which it moves from one evaluation to the next; 0.0 of what is not
    evaluated.
    """
    if not isinstance(quantity, ToTarget):
        return 0.0
    found = reach_target(result, quantity.target)
    return found.since_seconds / found.seconds if found and found.seconds > 0 else 0.0
