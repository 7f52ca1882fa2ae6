"""What the time of a step consists of: waiting for data, communication, the optimizer, and the rest
of the computation.

The wait for data is in every step log. The other parts are differences between probes: steps after
the run's own work that leave one thing out (``training/run/probes.py``).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import hypot, inf, sqrt
from statistics import NormalDist, fmean, stdev
from typing import Any

from traindyno.core.measurement.throughput import Throughput
from traindyno.core.step_log.content import ProcessLog, Session
from traindyno.core.step_log.fields import facts_between_steps
from traindyno.core.step_log.line import (
    CPU_SECONDS,
    HELD_BATCHES,
    NO_EXCHANGE,
    NO_OPTIMIZER,
    PROBE,
    PROBED,
    STEP_SECONDS,
    WAIT_SECONDS,
    WHOLE_STEP,
)
from traindyno.core.step_log.step_table import StepTable
from traindyno.figures.distributions import t_quantile
from traindyno.figures.estimates import CONFIDENCE

NORMAL_QUANTILE = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
LEAST_PROBE_STEPS = 2
# Each leaves out what the one before does, and one thing more.
PROBES = (WHOLE_STEP, HELD_BATCHES, NO_EXCHANGE, NO_OPTIMIZER)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartSeconds:
    """Mean seconds of a step, with their standard error.

    A difference of two means may be slightly negative.
    """

    mean: float
    error: float

    @property
    def half_width(self) -> float:
        return NORMAL_QUANTILE * self.error

    @property
    def is_found(self) -> bool:
        """Whether it is more than nothing, at 95 %."""
        return self.mean > self.half_width

    def minus(self, other: "PartSeconds") -> "PartSeconds":
        return PartSeconds(mean=self.mean - other.mean, error=hypot(self.error, other.error))


def mean_seconds(parts: Sequence[PartSeconds]) -> PartSeconds:
    error = hypot(*(each.error for each in parts)) / len(parts)
    return PartSeconds(mean=fmean(each.mean for each in parts), error=error)


def standard_error(values: Sequence[float]) -> float:
    return stdev(values) / sqrt(len(values)) if len(values) > 1 else 0.0


def rounds_of(processes: Sequence[ProcessLog], name: str) -> list[PartSeconds]:
    """The probe's rounds, each on the process whose steps took longest; empty unless all processes
    have the same.
    """
    by_process = [
        [_step_seconds(facts.get(STEP_SECONDS)) for facts in probed if facts.get(PROBED) == name]
        for process in processes
        for probed in [[phase.facts for phase in process.phases if phase.name == PROBE]]
    ]
    if len({len(rounds) for rounds in by_process}) != 1 or not all(map(all, by_process)):
        return []
    slowest = [max(seconds, key=fmean) for seconds in zip(*by_process, strict=True)]
    return [PartSeconds(mean=fmean(seconds), error=standard_error(seconds)) for seconds in slowest]


def _step_seconds(given: Any) -> list[float]:
    """Empty for a round that can't be."""
    if not isinstance(given, list) or len(given) < LEAST_PROBE_STEPS:
        return []
    are_possible = all(type(each) in (int, float) and 0 < each < inf for each in given)
    return [float(each) for each in given] if are_possible else []


def differences(first: Sequence[PartSeconds], second: Sequence[PartSeconds]) -> list[PartSeconds]:
    """Round by round; empty if one has fewer."""
    if len(first) != len(second):
        return []
    return [one.minus(other) for one, other in zip(first, second, strict=True)]


def error_of_rounds(parts: Sequence[Sequence[PartSeconds]]) -> float:
    """What varies between the rounds, beside their steps: of all parts together, because two rounds
    of one may agree by chance. So large that the normal distribution's interval is as wide as
    Student's.
    """
    degrees = sum(len(rounds) - 1 for rounds in parts)
    if not degrees:
        return 0.0
    pooled = sqrt(fmean(standard_error([each.mean for each in rounds]) ** 2 for rounds in parts))
    return pooled * t_quantile((1 + CONFIDENCE) / 2, degrees) / NORMAL_QUANTILE


@dataclass(frozen=True, slots=True, kw_only=True)
class StepParts:
    """Parts of the mean step of the steady window, without recurring events; None is unknown.

    ``waiting`` is by the log, the mean of the processes. ``data`` is what the step would lose
    without its loader; without a probe it equals ``waiting``. ``compute`` is what the last probe
    takes: forward and backward pass, and what the host adds to them. Differences may be negative:
    ``core/verdict/slow_steps.py``.
    """

    samples_per_step: float
    step: PartSeconds
    waiting: PartSeconds
    data: PartSeconds
    communication: PartSeconds | None = None
    optimizer: PartSeconds | None = None
    compute: PartSeconds | None = None
    #: Whether there were probes; a user's script has none.
    is_probed: bool = False
    #: Share of ``waiting`` in which the thread that trains computes; None if unknown.
    computing_share: float | None = None

    def share(self, part: PartSeconds) -> float:
        return part.mean / self.step.mean


def measure_parts(
    session: Session, table: StepTable, throughput: Throughput | None, relative_error: float | None
) -> StepParts | None:
    """None without a rate.

    ``relative_error``: that of the mean step time, as the analysis of the steps found it.
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
        fmean(each)
        for each in zip(*(rank.steps.waits[first:] for rank in table.ranks), strict=True)
    ]
    waited = throughput.data_wait_share * mean
    waiting = PartSeconds(
        mean=waited, error=standard_error(waits) * waited / fmean(waits) if waited > 0 else 0.0
    )
    facts = [each for process in session.processes if (each := facts_between_steps(process.phases))]
    between = sum(float(each[WAIT_SECONDS]) for each in facts)
    parts = StepParts(
        samples_per_step=throughput.samples / throughput.steps,
        step=PartSeconds(mean=mean, error=error),
        waiting=waiting,
        data=waiting,
        computing_share=sum(float(each[CPU_SECONDS]) for each in facts) / between
        if between > 0
        else None,
    )
    probes = [rounds_of(session.processes, name) for name in PROBES]
    return _divide(parts, probes, is_alone=session.world_size == 1)


def _divide(
    parts: StepParts, probes: Sequence[Sequence[PartSeconds]], *, is_alone: bool
) -> StepParts:
    """Each probe leaves out what the one before did, and one thing more; where ranks can't be kept
    apart, the one without the optimizer's step exchanges gradients, too.

    The host may be busier during the probes than before: parts are shares of the whole steps among
    the probes.
    """
    whole, held, apart, no_optimizer = probes
    if not whole or not held or len(whole) != len(held):
        return parts
    scale = parts.step.mean / fmean(each.mean for each in whole)
    exchanged = [] if is_alone else differences(held, apart)
    updated = differences(apart or held, no_optimizer)
    of_data = differences(whole, held)
    error = error_of_rounds([each for each in (of_data, exchanged, updated) if each])

    def mean_of(rounds: Sequence[PartSeconds]) -> PartSeconds | None:
        if not rounds:
            return None
        mean = mean_seconds(rounds)
        return PartSeconds(mean=mean.mean * scale, error=max(mean.error, error) * scale)

    communication = PartSeconds(mean=0.0, error=0.0) if is_alone else mean_of(exchanged)
    return replace(
        parts,
        data=mean_of(of_data) or parts.waiting,
        communication=communication,
        optimizer=mean_of(updated),
        compute=None if communication is None else mean_of(no_optimizer),
        is_probed=True,
    )


def mean_parts(trials: Iterable[StepParts | None]) -> StepParts | None:
    """Mean parts of a cell, over its probed trials if there are any, else over all.

    The error of a probed step is at least the spread of all trials, which may be on other hosts.
    """
    everything = [each for each in trials if each is not None]
    known = [each for each in everything if each.is_probed] or everything
    if not known:
        return None
    step = mean_seconds([each.step for each in known])
    is_compared = known[0].is_probed and len(everything) > 1
    spread = stdev(each.step.mean for each in everything) if is_compared else 0.0
    return StepParts(
        samples_per_step=fmean(each.samples_per_step for each in known),
        step=PartSeconds(mean=step.mean, error=max(step.error, spread)),
        waiting=mean_seconds([each.waiting for each in known]),
        data=mean_seconds([each.data for each in known]),
        communication=_mean_if_known([each.communication for each in known]),
        optimizer=_mean_if_known([each.optimizer for each in known]),
        compute=_mean_if_known([each.compute for each in known]),
        is_probed=known[0].is_probed,
        computing_share=max(
            (each.computing_share for each in known if each.computing_share is not None),
            default=None,
        ),
    )


def _mean_if_known(parts: Sequence[PartSeconds | None]) -> PartSeconds | None:
    known = [each for each in parts if each is not None]
    return mean_seconds(known) if len(known) == len(parts) else None
