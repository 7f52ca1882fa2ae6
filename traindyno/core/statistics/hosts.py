"""Hosts are drawn at random, and some are faster: the part of a difference between cells that is due to hosts.

Trials on one host are not independent of each other (Kalibera and Jones 2013 treat hosts, runs and steps as nested
random effects). Cells that were measured on the same hosts are compared within them; otherwise a host is one
observation, however many trials ran on it; and if there is one host only, the spread comes from a prior.
"""

from collections.abc import Sequence, Set
from dataclasses import dataclass
from math import log, sqrt
from statistics import fmean, variance

from traindyno.core.statistics.estimates import (
    Comparison,
    LogMean,
    compare_means,
    comparison_of,
    log_mean,
    satterthwaite,
)

LEAST_DEGREES = 3
Groups = dict[str, list[float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """``hosts`` names the machines that the trial ran on, all of them as one; None where they are unknown.

    A trial on unknown machines counts as a separate draw.
    """

    value: float
    hosts: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HostSpread:
    """``deviation`` is the standard deviation of a host's speed, as a share. ``source`` names its origin."""

    deviation: float
    degrees_of_freedom: float
    source: str


# With 3 degrees of freedom a difference between two hosts has to exceed 13.5 %: no false claim up to a spread of 4.9 %.
STATED_PRIOR = HostSpread(deviation=0.03, degrees_of_freedom=3, source="a stated prior")


def draw_count(trials: Sequence[Trial]) -> int:
    """How many different sets of hosts the trials ran on."""
    return len(_by_hosts(trials))


def estimate_host_spread(cells: Sequence[Sequence[Trial]], prior: HostSpread = STATED_PRIOR) -> HostSpread:
    """The spread from the cells that ran on several hosts and repeated trials on one; below 3 degrees, the prior."""
    found = _variance_of_hosts(cells)
    if found is None or found[1] < LEAST_DEGREES:
        return prior
    return HostSpread(deviation=sqrt(found[0]), degrees_of_freedom=found[1], source="this suite's trials")


def update_prior(
    cells: Sequence[Sequence[Trial]], *, source: str, prior: HostSpread = STATED_PRIOR
) -> HostSpread | None:
    """``prior`` and the trials' variance, weighted by their degrees of freedom; None if the trials give no information.

    The posterior of a variance under a scaled inverse chi-squared prior (Gelman et al., Bayesian Data Analysis, 3rd
    edition, section 2.6). A few trials therefore change the prior little.
    """
    found = _variance_of_hosts(cells)
    if found is None:
        return None
    degrees = prior.degrees_of_freedom + found[1]
    squares = prior.degrees_of_freedom * prior.deviation**2 + found[1] * found[0]
    return HostSpread(deviation=sqrt(squares / degrees), degrees_of_freedom=degrees, source=source)


def _variance_of_hosts(cells: Sequence[Sequence[Trial]]) -> tuple[float, int] | None:
    """Variance and degrees of freedom; None if no cell ran on several hosts, and repeatedly on one of them.

    Method of moments: the variance of the hosts' means, less the part that their trials' own spread explains.
    """
    grouped = [list(_by_hosts(trials).values()) for trials in cells]
    within = [(variance(group), len(group) - 1) for hosts in grouped for group in hosts if len(group) > 1]
    between = [hosts for hosts in grouped if len(hosts) > 1 and any(len(group) > 1 for group in hosts)]
    degrees = sum(len(hosts) - 1 for hosts in between)
    if not degrees:
        return None
    own = sum(part * weight for part, weight in within) / sum(weight for _, weight in within)
    squares = sum(variance([fmean(group) for group in hosts]) * (len(hosts) - 1) for hosts in between)
    explained = own * fmean([1 / len(group) for hosts in between for group in hosts])
    return max(0.0, squares / degrees - explained), degrees


def compare_on_hosts(
    first: Sequence[Trial],
    second: Sequence[Trial],
    *,
    spread: HostSpread = STATED_PRIOR,
    inflation: tuple[float, float] = (1.0, 1.0),
) -> Comparison:
    """The ratio first ÷ second. ``inflation``: the factor of each cell's variance (see ``serial_correlation``)."""
    shared = _by_hosts(first).keys() & _by_hosts(second).keys()
    if shared and all(sum(trial.hosts in shared for trial in trials) > 1 for trials in (first, second)):
        return _compare_within(_on(first, shared), _on(second, shared), inflation)
    means = [mean_over_hosts(trials, spread, factor) for trials, factor in zip((first, second), inflation, strict=True)]
    return compare_means(means[0], means[1])


def mean_over_hosts(trials: Sequence[Trial], spread: HostSpread, inflation: float = 1.0) -> LogMean:
    """The mean of the hosts' means. If all trials ran on one host, ``spread`` is assumed between hosts."""
    groups = list(_by_hosts(trials).values())
    if len(groups) == len(trials):
        return log_mean([trial.value for trial in trials], inflation=inflation)
    means = [fmean(group) for group in groups]
    if len(groups) > 1:
        return LogMean(mean=fmean(means), variance=variance(means) / len(means), degrees_of_freedom=len(means) - 1)
    parts = [
        (spread.deviation**2, spread.degrees_of_freedom),
        (inflation * variance(groups[0]) / len(groups[0]), len(groups[0]) - 1),
    ]
    return LogMean(mean=means[0], variance=sum(part for part, _ in parts), degrees_of_freedom=satterthwaite(parts))


def _compare_within(first: Groups, second: Groups, inflation: tuple[float, float]) -> Comparison:
    """The ratio first ÷ second on the shared hosts. With one host its speed cancels: Welch's comparison remains."""
    if len(first) == 1:
        (one,), (other,) = first.values(), second.values()
        means = [
            LogMean(mean=fmean(logs), variance=factor * variance(logs) / len(logs), degrees_of_freedom=len(logs) - 1)
            for logs, factor in zip((one, other), inflation, strict=True)
        ]
        return compare_means(means[0], means[1])
    return _compare_in_blocks(first, second, max(inflation))


def _compare_in_blocks(first: Groups, second: Groups, inflation: float) -> Comparison:
    """Hosts as blocks of a two-way layout without interaction: least squares (Scheffé 1959, chapter 4)."""
    weights = {host: len(first[host]) * len(second[host]) / (len(first[host]) + len(second[host])) for host in first}
    total = sum(weights.values())
    difference = sum(weight * (fmean(first[host]) - fmean(second[host])) for host, weight in weights.items()) / total
    squares, count = 0.0, 0
    for host in first:
        block = [*first[host], *(value + difference for value in second[host])]
        center = fmean(block)
        squares += sum((value - center) ** 2 for value in block)
        count += len(block)
    degrees = count - len(first) - 1
    return comparison_of(difference, inflation * squares / degrees / total, degrees)


def _by_hosts(trials: Sequence[Trial]) -> Groups:
    """Logarithms of the values by hosts; each trial on unknown hosts is a separate group."""
    groups: Groups = {}
    for index, trial in enumerate(trials):
        groups.setdefault(trial.hosts or f"unknown {index}", []).append(log(trial.value))
    return groups


def _on(trials: Sequence[Trial], hosts: Set[str]) -> Groups:
    return {name: group for name, group in _by_hosts(trials).items() if name in hosts}


def needs_prior(first: Sequence[Trial], second: Sequence[Trial]) -> bool:
    """Whether the spread between hosts is assumed: trials repeat on one set of hosts that the other cell lacks."""
    groups = _by_hosts(first), _by_hosts(second)
    shared = groups[0].keys() & groups[1].keys()
    return not shared and any(
        len(own) == 1 and len(trials) > 1 for own, trials in zip(groups, (first, second), strict=True)
    )
