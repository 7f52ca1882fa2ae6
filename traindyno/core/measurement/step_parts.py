"""What the time of a step consists of: waiting for data, communication, the optimizer, and the rest of the computation.

The wait for data is in every step log. The other parts are differences between the measured steps and probes: steps
after the run's own work that leave one thing out (``training/run/probes.py``).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import hypot, inf, sqrt
from statistics import NormalDist, fmean, stdev
from typing import Any

from traindyno.core.measurement.throughput import Throughput
from traindyno.core.statistics.estimates import CONFIDENCE
from traindyno.core.step_log.content import ProcessLog, Session
from traindyno.core.step_log.line import (
    HELD_BATCHES,
    NO_EXCHANGE,
    NO_OPTIMIZER,
    PROBE,
    PROBED,
    STEP_SECONDS,
    WHOLE_STEP,
)
from traindyno.core.step_log.step_table import StepTable

LEAST_PROBE_STEPS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class PartSeconds:
    """Mean seconds of a step, with the standard error that the scatter of the steps shows.

    A difference of two means may be slightly negative.
    """

    mean: float
    error: float

    @property
    def half_width(self) -> float:
        return NormalDist().inv_cdf((1 + CONFIDENCE) / 2) * self.error

    @property
    def is_found(self) -> bool:
        """Whether it is more than nothing, at 95 %."""
        return self.mean > self.half_width

    def minus(self, other: "PartSeconds") -> "PartSeconds":
        return PartSeconds(mean=self.mean - other.mean, error=hypot(self.error, other.error))


@dataclass(frozen=True, slots=True, kw_only=True)
class StepParts:
    """Parts of the mean step of the steady window, without recurring events; None is unknown.

    ``waiting`` is what the log says, the mean of the processes. ``data`` is what the step would lose without its
    loader; without a probe it equals ``waiting``.
    """

    samples_per_step: float
    step: PartSeconds
    waiting: PartSeconds
    data: PartSeconds
    communication: PartSeconds | None = None
    optimizer: PartSeconds | None = None
    #: Forward and backward pass, and what the host adds to them.
    compute: PartSeconds | None = None
    #: Whether there were probes; a user's script has none.
    is_probed: bool = False

    def share(self, part: PartSeconds) -> float:
        return part.mean / self.step.mean


def measure_parts(
    session: Session, table: StepTable, throughput: Throughput | None, relative_error: float | None
) -> StepParts | None:
    """None without a rate. ``relative_error``: that of the mean step time, as the analysis of the steps found it."""
    if throughput is None or table.stride > 1:
        return None
    first = len(table) - throughput.steps
    mean = throughput.seconds * (1 - throughput.recurring_share) / throughput.steps
    error = _standard_error(table.slowest_seconds[first:]) if relative_error is None else relative_error * mean
    step, waiting = PartSeconds(mean=mean, error=error), _waiting(table, first)
    parts = StepParts(samples_per_step=throughput.samples / throughput.steps, step=step, waiting=waiting, data=waiting)
    probes = {name: _rounds(session.processes, name) for name in (WHOLE_STEP, HELD_BATCHES, NO_EXCHANGE, NO_OPTIMIZER)}
    return _divide(parts, probes, is_alone=session.world_size == 1)


def _divide(parts: StepParts, probes: Mapping[str, Sequence[PartSeconds]], *, is_alone: bool) -> StepParts:
    """Each probe leaves out what the one before did, and one thing more; where ranks can't be kept apart, the one
    without the optimizer's step exchanges gradients, too.

    The host may be busier during the probes than before: parts are shares of the whole steps among the probes.
    """
    whole, held, apart, no_optimizer = probes.values()
    if not whole or not held or len(whole) != len(held):
        return parts
    scale = parts.step.mean / fmean(each.mean for each in whole)

    def difference(first: Sequence[PartSeconds], second: Sequence[PartSeconds]) -> PartSeconds | None:
        if not second or len(first) != len(second):
            return None
        return _over_rounds([one.minus(other) for one, other in zip(first, second, strict=True)], scale)

    communication = PartSeconds(mean=0.0, error=0.0) if is_alone else difference(held, apart)
    return StepParts(
        samples_per_step=parts.samples_per_step,
        step=parts.step,
        waiting=parts.waiting,
        data=difference(whole, held) or parts.waiting,
        communication=communication,
        optimizer=difference(apart or held, no_optimizer),
        compute=_over_rounds(no_optimizer, scale) if no_optimizer and communication is not None else None,
        is_probed=True,
    )


def _over_rounds(rounds: Sequence[PartSeconds], scale: float) -> PartSeconds:
    """Rounds that differ by more than the scatter of their steps show what else varies."""
    error = max(_mean(rounds).error, _standard_error([each.mean for each in rounds]))
    return PartSeconds(mean=fmean(each.mean for each in rounds) * scale, error=error * scale)


def _waiting(table: StepTable, first: int) -> PartSeconds:
    """The scatter is that of the mean over the processes, step by step."""
    last = len(table) - 1
    count = (last - first + 1) * len(table.ranks)
    waits = [fmean(each) for each in zip(*(rank.steps.waits[first:] for rank in table.ranks), strict=True)]
    return PartSeconds(
        mean=sum(rank.wait_seconds(first, last) for rank in table.ranks) / count, error=_standard_error(waits)
    )


def _rounds(processes: Sequence[ProcessLog], name: str) -> list[PartSeconds]:
    """The probe's rounds, each on the process whose steps took longest; empty unless all processes have the same."""
    by_process = [_probed(process, name) for process in processes]
    if len({len(rounds) for rounds in by_process}) != 1 or not all(map(all, by_process)):
        return []
    slowest = [max(seconds, key=fmean) for seconds in zip(*by_process, strict=True)]
    return [PartSeconds(mean=fmean(seconds), error=_standard_error(seconds)) for seconds in slowest]


def _probed(process: ProcessLog, name: str) -> list[list[float]]:
    """The seconds of the steps of each round; empty for a round that can't be."""
    facts = [phase.facts for phase in process.phases if phase.name == PROBE and phase.facts.get(PROBED) == name]
    return [_step_seconds(each.get(STEP_SECONDS)) for each in facts]


def _step_seconds(given: Any) -> list[float]:
    if not isinstance(given, list) or len(given) < LEAST_PROBE_STEPS:
        return []
    are_possible = all(type(each) in (int, float) and 0 < each < inf for each in given)
    return [float(each) for each in given] if are_possible else []


def _standard_error(values: Sequence[float]) -> float:
    return stdev(values) / sqrt(len(values)) if len(values) > 1 else 0.0


def mean_parts(trials: Iterable[StepParts | None]) -> StepParts | None:
    """Those of a cell: of its probed trials if it has any, else of all."""
    known = [each for each in trials if each is not None]
    known = [each for each in known if each.is_probed] or known
    if not known:
        return None

    return StepParts(
        samples_per_step=fmean(each.samples_per_step for each in known),
        step=_mean([each.step for each in known]),
        waiting=_mean([each.waiting for each in known]),
        data=_mean([each.data for each in known]),
        communication=_mean_if_known([each.communication for each in known]),
        optimizer=_mean_if_known([each.optimizer for each in known]),
        compute=_mean_if_known([each.compute for each in known]),
        is_probed=known[0].is_probed,
    )


def _mean_if_known(parts: Sequence[PartSeconds | None]) -> PartSeconds | None:
    known = [each for each in parts if each is not None]
    return _mean(known) if len(known) == len(parts) else None


def _mean(parts: Sequence[PartSeconds]) -> PartSeconds:
    error = hypot(*(each.error for each in parts)) / len(parts)
    return PartSeconds(mean=fmean(each.mean for each in parts), error=error)
