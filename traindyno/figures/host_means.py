"""Means over draws of hosts: the part of a difference between cells that is due to hosts.

Trials on one host are not independent of each other (Kalibera and Jones 2013 treat hosts, runs and
steps as nested random effects). Sets of hosts that share one are one draw. Cells that were measured
on the same hosts are compared within them; otherwise a draw is one observation, however many trials
ran on it; and if there is one draw only, the spread comes from a prior.
"""

from collections.abc import Sequence
from dataclasses import replace
from math import log, sqrt
from statistics import fmean

from traindyno.figures.hosts import ONE_MACHINE, STATED_PRIOR, HostSpread
from traindyno.figures.log_means import LogMean, log_mean, moderate, total_variance, variance
from traindyno.figures.trials import Trial, draw_count, logs_by_draw


def mean_over_hosts(trials: Sequence[Trial], spread: HostSpread, inflation: float = 1.0) -> LogMean:
    """The mean of the draws' means."""
    means = [fmean(group) for group in logs_by_draw(trials)]
    if len(trials) == 1:
        return LogMean(mean=means[0])
    variance_of_mean, degrees = _variance_over_hosts(
        trials, spread, spread.deviation, inflation, runs=0
    )
    return LogMean(mean=fmean(means), variance=variance_of_mean, degrees_of_freedom=degrees)


def one_more_run(
    trials: Sequence[Trial], spread: HostSpread, inflation: float = 1.0
) -> tuple[float, float]:
    """Variance, with its degrees of freedom, of a run on other hosts around the mean of two trials
    or more.

    One draw shows nothing of how hosts differ: then the prior's upper end counts.
    """
    deviation = spread.deviation if draw_count(trials) == 1 else spread.typical
    return _variance_over_hosts(trials, spread, deviation, inflation, runs=1)


def _variance_over_hosts(
    trials: Sequence[Trial], spread: HostSpread, deviation: float, inflation: float, *, runs: int
) -> tuple[float, float]:
    """The variance of the mean, and of so many runs around it: a trial's own spread, and that
    between draws of hosts.

    Between draws: what their means show beyond a trial's spread, and the prior, weighted by their
    degrees of freedom. A trial's own spread is that of all trials around their mean: the few that
    share a draw would know it too little. Trials that are a draw each need no prior: their spread
    includes the hosts.
    """
    groups = logs_by_draw(trials)
    count = len(groups)
    own = variance([log(trial.value) for trial in trials])
    if count == len(trials):
        return own * (runs + inflation / count), count - 1
    share = fmean([1 / len(group) for group in groups])
    excess = (
        max(0.0, variance([fmean(group) for group in groups]) - own * share) if count > 1 else 0.0
    )
    of_trials = own * (runs + inflation * share / count)
    if spread.gives_way(excess, deviation):
        return excess * (runs + 1 / count) + of_trials, count - 1
    between, known = moderate(excess, count - 1, deviation**2, spread.degrees_of_freedom)
    return total_variance([(between * (runs + 1 / count), known), (of_trials, len(trials) - 1)])


def difference_over_hosts(
    first: Sequence[Trial],
    second: Sequence[Trial],
    spreads: tuple[HostSpread, HostSpread],
    inflation: tuple[float, float],
) -> LogMean:
    """Each cell's mean over its hosts.

    A spread that both assume is known with its degrees of freedom once.
    """
    used = _hosts_of(first)
    if used and used == _hosts_of(second):
        spreads = (ONE_MACHINE, ONE_MACHINE)
    sides = list(zip((first, second), spreads, inflation, strict=True))
    means = [mean_over_hosts(trials, spread, factor) for trials, spread, factor in sides]
    assumed = [
        spread
        for trials, spread, _ in sides
        if spread.deviation and len(trials) > 1 and draw_count(trials) == 1
    ]
    difference = means[0].minus(means[1])
    if all(draw_count(trials) == len(trials) for trials in (first, second)):
        return difference.told_by([len(first), len(second)])
    if not assumed:
        return difference
    of_hosts = sum(spread.deviation**2 for spread in assumed)
    if len(assumed) == 2 and assumed[0] == assumed[1]:
        own = [
            log_mean([trial.value for trial in trials], inflation=factor)
            for trials, _, factor in sides
        ]
        parts = [(mean.variance or 0.0, mean.degrees_of_freedom or 1.0) for mean in own]
        parts.append((of_hosts, assumed[0].degrees_of_freedom))
        total, degrees = total_variance(parts)
        difference = replace(difference, variance=total, degrees_of_freedom=degrees)
    return replace(difference, host_variance=of_hosts)


def _hosts_of(trials: Sequence[Trial]) -> set[str]:
    return {host for trial in trials for host in trial.hosts or ()}


def update_prior(
    cells: Sequence[Sequence[Trial]], *, source: str, prior: HostSpread = STATED_PRIOR
) -> HostSpread | None:
    """The spread by ``prior`` and the trials' variance, weighted by their degrees of freedom; None
    if the trials give no information.

    The posterior of a variance under a scaled inverse chi-squared prior (Gelman et al., Bayesian
    Data Analysis, 3rd edition, section 2.6). A few trials therefore change the prior little.
    """
    between = _variance_of_hosts(cells)
    if between is None:
        return None
    (deviation, degrees), (typical, _) = (
        moderate(*between, known**2, prior.degrees_of_freedom)
        for known in (prior.deviation, prior.typical)
    )
    return HostSpread(
        deviation=sqrt(deviation),
        typical=sqrt(typical),
        degrees_of_freedom=degrees,
        source=source,
    )


def _variance_of_hosts(cells: Sequence[Sequence[Trial]]) -> tuple[float, int] | None:
    """Variance and degrees of freedom; None if no cell ran on several hosts, and repeatedly on one
    of them.

    Method of moments: the variance of the hosts' means, less the part that their trials' own spread
    explains.
    """
    grouped = [logs_by_draw(trials) for trials in cells]
    within = [
        (variance(group), len(group) - 1) for hosts in grouped for group in hosts if len(group) > 1
    ]
    between = [
        hosts for hosts in grouped if len(hosts) > 1 and any(len(group) > 1 for group in hosts)
    ]
    degrees = sum(len(hosts) - 1 for hosts in between)
    if not degrees:
        return None
    own = sum(part * weight for part, weight in within) / sum(weight for _, weight in within)
    squares = sum(
        variance([fmean(group) for group in hosts]) * (len(hosts) - 1) for hosts in between
    )
    explained = own * fmean([1 / len(group) for hosts in between for group in hosts])
    return max(0.0, squares / degrees - explained), degrees
