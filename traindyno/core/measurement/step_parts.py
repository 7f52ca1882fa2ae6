"""The mean time of a step and its wait for data, which is in every step log."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import hypot, sqrt
from statistics import NormalDist, fmean, stdev

from traindyno.core.measurement.throughput import Throughput
from traindyno.core.step_log.content import Session
from traindyno.core.step_log.fields import facts_between_steps
from traindyno.core.step_log.line import CPU_SECONDS, WAIT_SECONDS
from traindyno.core.step_log.step_table import StepTable
from traindyno.figures.estimates import CONFIDENCE

NORMAL_QUANTILE = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartSeconds:
    """Mean seconds of a step, with their standard error."""

    mean: float
    error: float

    @property
    def half_width(self) -> float:
        return NORMAL_QUANTILE * self.error

    def scaled(self, factor: float) -> "PartSeconds":
        return PartSeconds(mean=self.mean * factor, error=self.error * factor)


def mean_seconds(parts: Sequence[PartSeconds]) -> PartSeconds:
    error = hypot(*(part.error for part in parts)) / len(parts)
    return PartSeconds(mean=fmean(part.mean for part in parts), error=error)


def standard_error(values: Sequence[float]) -> float:
    return stdev(values) / sqrt(len(values)) if len(values) > 1 else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class StepParts:
    """Parts of the mean step of the steady window, without recurring events.

    ``waiting`` is the mean of the processes.
    """

    step: PartSeconds
    waiting: PartSeconds
    #: Share of ``waiting`` in which the thread that trains computes; None if unknown.
    computing_share: float | None = None

    def share(self, part: PartSeconds) -> float:
        return part.mean / self.step.mean


def measure_parts(
    session: Session, table: StepTable, throughput: Throughput | None, relative_error: float | None
) -> StepParts | None:
    """Parts of the mean step; None without a rate.

    ``relative_error`` is the error of the mean step time, as the analysis of the steps found it.
    """
    if throughput is None:
        return None
    first = len(table) - throughput.steps
    mean = throughput.seconds * (1 - throughput.recurring_share) / throughput.steps
    error = (
        standard_error(table.slowest_seconds[first:])
        if relative_error is None
        else relative_error * mean
    )
    # the scatter of waiting is that of the mean over the processes, step by step, relative to their
    # own mean
    waits = [
        fmean(waits_of_ranks)
        for waits_of_ranks in zip(*(rank.steps.waits[first:] for rank in table.ranks), strict=True)
    ]
    waited = throughput.data_wait_share * mean
    waiting = PartSeconds(
        mean=waited, error=standard_error(waits) * waited / fmean(waits) if waited > 0 else 0.0
    )
    facts = [fact for process in session.processes if (fact := facts_between_steps(process.phases))]
    between = sum(float(fact[WAIT_SECONDS]) for fact in facts)
    computing = sum(float(fact[CPU_SECONDS]) for fact in facts)
    return StepParts(
        step=PartSeconds(mean=mean, error=error),
        waiting=waiting,
        computing_share=computing / between if between > 0 else None,
    )


def mean_parts(trials: Sequence[StepParts]) -> StepParts | None:
    """Means over a cell's trials, with the largest share of computing in a wait.

    The wait's share of the step is the mean of the trials' shares.
    """
    if not trials:
        return None
    step = mean_seconds([trial.step for trial in trials])
    return StepParts(
        step=step,
        waiting=mean_seconds(
            [trial.waiting.scaled(step.mean / trial.step.mean) for trial in trials]
        ),
        computing_share=max(
            (trial.computing_share for trial in trials if trial.computing_share is not None),
            default=None,
        ),
    )
