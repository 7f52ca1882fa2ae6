"""The probes of a step log: rounds of a few steps, and the differences between those of two probes."""

from collections.abc import Sequence
from math import inf, sqrt
from statistics import fmean
from typing import Any

from traindyno.core.measurement.part_seconds import NORMAL_QUANTILE, PartSeconds, standard_error
from traindyno.core.statistics.estimates import CONFIDENCE
from traindyno.core.statistics.student_t import t_quantile
from traindyno.core.step_log.content import ProcessLog
from traindyno.core.step_log.line import PROBE, PROBED, STEP_SECONDS

LEAST_PROBE_STEPS = 2


def rounds_of(processes: Sequence[ProcessLog], name: str) -> list[PartSeconds]:
    """The probe's rounds, each on the process whose steps took longest; empty unless all processes have the same."""
    by_process = [_probed(process, name) for process in processes]
    if len({len(rounds) for rounds in by_process}) != 1 or not all(map(all, by_process)):
        return []
    slowest = [max(seconds, key=fmean) for seconds in zip(*by_process, strict=True)]
    return [PartSeconds(mean=fmean(seconds), error=standard_error(seconds)) for seconds in slowest]


def _probed(process: ProcessLog, name: str) -> list[list[float]]:
    """The seconds of the steps of each round; empty for a round that can't be."""
    facts = [phase.facts for phase in process.phases if phase.name == PROBE and phase.facts.get(PROBED) == name]
    return [_step_seconds(each.get(STEP_SECONDS)) for each in facts]


def _step_seconds(given: Any) -> list[float]:
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
    """What varies between the rounds, beside their steps: of all parts together, because two rounds of one may agree by
    chance. So large that the normal distribution's interval is as wide as Student's.
    """
    degrees = sum(len(rounds) - 1 for rounds in parts)
    if not degrees:
        return 0.0
    pooled = sqrt(fmean(standard_error([each.mean for each in rounds]) ** 2 for rounds in parts))
    return pooled * t_quantile((1 + CONFIDENCE) / 2, degrees) / NORMAL_QUANTILE
