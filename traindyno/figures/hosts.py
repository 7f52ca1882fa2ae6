"""Hosts are drawn at random, and some are faster: the part of a difference between cells that is
due to hosts.

Trials on one host are not independent of each other (Kalibera and Jones 2013 treat hosts, runs and
steps as nested random effects). Sets of hosts that share one are one draw. Cells that were measured
on the same hosts are compared within them; otherwise a draw is one observation, however many trials
ran on it; and if there is one draw only, the spread comes from a prior.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from math import log, sqrt
from statistics import fmean

from traindyno.figures.blocks import (
    LEAST_JOBS,
    NO_POOL,
    Blocks,
    InBlock,
    Pool,
    compare_in_blocks,
)
from traindyno.figures.estimates import (
    KNOWN,
    LEAST_COUNT,
    Comparison,
    LogMean,
    compare_means,
    comparison_of,
    log_mean,
    satterthwaite,
    variance,
)

# A run that waits for its data for a larger share of its time is bound by its input.
INPUT_BOUND_SHARE = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One trial's value, and where it ran.

    ``hosts`` are the machines that it ran on; None where they are unknown: it counts as a separate
    draw. ``block`` is the round that it shares with trials of other cells. ``job`` is the one that
    carried it with others, ``place`` its place there, from 1.
    """

    value: float
    hosts: frozenset[str] | None = None
    block: str | None = None
    job: str | None = None
    place: int | None = None


Draws = dict[int, list[Trial]]


def pool_of(cells: Sequence[Sequence[Trial]]) -> Pool:
    return Pool(cells=[blocks_of(trials) for trials in cells])


class HostClass(StrEnum):
    """What decides how far hosts differ."""

    ONE_HOST = "one host"
    MANY_HOSTS = "many hosts"
    INPUT_BOUND = "input-bound"


@dataclass(frozen=True, slots=True, kw_only=True)
class HostSpread:
    """How far the speeds of hosts differ: their standard deviation, as a share.

    ``deviation`` is the upper end of what is published; a difference between cells on unlike hosts
    has to be larger. ``typical`` is the middle, which predicts one run of a cell that ran on
    several draws of hosts.
    """

    deviation: float
    typical: float
    degrees_of_freedom: float
    source: str


HostPriors = Mapping[HostClass, HostSpread]
# Published runs of one configuration on several hosts: 0.1 to 2 % where computation decides, 4 %
# where input does; of many hosts the slowest decides. With 3 degrees of freedom, 2 % means that two
# hosts have to differ by 9.0 %.
STATED_PRIORS: HostPriors = {
    host_class: HostSpread(
        deviation=deviation,
        typical=deviation / 2,
        degrees_of_freedom=3,
        source=f"a stated prior, {host_class.value}",
    )
    for host_class, deviation in (
        (HostClass.ONE_HOST, 0.02),
        (HostClass.MANY_HOSTS, 0.03),
        (HostClass.INPUT_BOUND, 0.04),
    )
}
# A local machine is all that there is: its jobs are on no other host.
ONE_MACHINE = HostSpread(deviation=0.0, typical=0.0, degrees_of_freedom=KNOWN, source="one machine")
STATED_PRIOR = STATED_PRIORS[HostClass.ONE_HOST]


def host_class(host_count: int, data_wait_share: float | None) -> HostClass:
    if (data_wait_share or 0.0) > INPUT_BOUND_SHARE:
        return HostClass.INPUT_BOUND
    return HostClass.MANY_HOSTS if host_count > 1 else HostClass.ONE_HOST


def draw_count(trials: Sequence[Trial]) -> int:
    """How many independent draws of hosts the trials ran on."""
    return len(_by_draw(trials)[0])


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
    degrees = prior.degrees_of_freedom + between[1]
    deviation, typical = (
        sqrt((prior.degrees_of_freedom * deviation**2 + between[1] * between[0]) / degrees)
        for deviation in (prior.deviation, prior.typical)
    )
    return HostSpread(
        deviation=deviation, typical=typical, degrees_of_freedom=degrees, source=source
    )


def _variance_of_hosts(cells: Sequence[Sequence[Trial]]) -> tuple[float, int] | None:
    """Variance and degrees of freedom; None if no cell ran on several hosts, and repeatedly on one
    of them.

    Method of moments: the variance of the hosts' means, less the part that their trials' own spread
    explains.
    """
    grouped = [[_logs(draw) for draw in _by_draw(trials)[0].values()] for trials in cells]
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


def compare_on_hosts(
    first: Sequence[Trial],
    second: Sequence[Trial],
    *,
    pool: Pool = NO_POOL,
    spreads: tuple[HostSpread, HostSpread] = (STATED_PRIOR, STATED_PRIOR),
    inflation: tuple[float, float] = (1.0, 1.0),
) -> Comparison:
    """The ratio first ÷ second, by its spread from block to block.

    The blocks are passes of jobs that both were in, or else rounds. Hosts on which both ran in a
    block cancel; blocks that share other hosts are one observation. Too few observations leave the
    spread to the draws of hosts: ``spreads`` are the priors of the two cells. ``inflation``: the
    factor of each cell's variance (see ``serial_correlation``).
    """
    passes, rounds = (
        [blocks_of(trials, by_job=by_job) for trials in (first, second)] for by_job in (True, False)
    )
    in_jobs = passes[0].keys() & passes[1].keys()
    shared = rounds[0].keys() & rounds[1].keys()
    sides = rounds if 2 * len(in_jobs) <= len(shared) else passes
    apart = [
        _on_both(block, sides[0][block], sides[1][block])
        for block in sorted(sides[0].keys() & sides[1].keys())
    ]
    units = [[trial.block or "" for trial in unit] for unit in _by_draw(apart)[0].values()]
    if len(units) < len(apart):
        pool = NO_POOL
        sides = [_joined(side, units) for side in sides]
    least = LEAST_JOBS if sides is passes and any(trial.job for trial in first) else LEAST_COUNT
    comparison = compare_in_blocks(sides[0], sides[1], pool, inflation=max(inflation), least=least)
    return comparison or _compare_over_hosts(first, second, spreads, inflation)


def _on_both(block: str, one: InBlock, other: InBlock) -> Trial:
    """A block of two cells as a trial on the hosts of both; hosts that cancel count as unknown."""
    hosts = None if one.hosts == other.hosts else one.hosts | other.hosts
    return Trial(value=1.0, hosts=hosts, block=block)


def _joined(side: Blocks, units: Sequence[Sequence[str]]) -> dict[str, InBlock]:
    """The mean of each unit of blocks, under the name of its first block."""
    return {
        unit[0]: InBlock(value=fmean(side[block].value for block in unit), place=None)
        for unit in units
    }


def _compare_over_hosts(
    first: Sequence[Trial],
    second: Sequence[Trial],
    spreads: tuple[HostSpread, HostSpread],
    inflation: tuple[float, float],
) -> Comparison:
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
    comparison = compare_means(means[0], means[1])
    if not assumed:
        return comparison
    of_hosts = sum(spread.deviation**2 for spread in assumed)
    if len(assumed) == 2 and assumed[0] == assumed[1]:
        own = [
            log_mean([trial.value for trial in trials], inflation=factor)
            for trials, _, factor in sides
        ]
        parts = [(mean.variance or 0.0, mean.degrees_of_freedom or 1.0) for mean in own]
        parts.append((of_hosts, assumed[0].degrees_of_freedom))
        comparison = comparison_of(
            means[0].mean - means[1].mean, sum(part for part, _ in parts), satterthwaite(parts)
        )
    return replace(comparison, host_variance=of_hosts)


def _hosts_of(trials: Sequence[Trial]) -> set[str]:
    return {host for trial in trials for host in trial.hosts or ()}


def mean_over_hosts(trials: Sequence[Trial], spread: HostSpread, inflation: float = 1.0) -> LogMean:
    """The mean of the draws' means."""
    means = [fmean(_logs(group)) for group in _by_draw(trials)[0].values()]
    if len(trials) == 1:
        return LogMean(mean=means[0], variance=None, degrees_of_freedom=None)
    variance_of_mean, degrees = _variance_over_hosts(
        trials, spread.deviation, spread.degrees_of_freedom, inflation, runs=0
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
    return _variance_over_hosts(trials, deviation, spread.degrees_of_freedom, inflation, runs=1)


def _variance_over_hosts(
    trials: Sequence[Trial], deviation: float, degrees: float, inflation: float, *, runs: int
) -> tuple[float, float]:
    """The variance of the mean, and of so many runs around it: a trial's own spread, and that
    between draws of hosts.

    Between draws: what their means show beyond a trial's spread, and the prior, weighted by their
    degrees of freedom. A trial's own spread is that of all trials around their mean: the few that
    share a draw would know it too little. Trials that are a draw each need no prior: their spread
    includes the hosts.
    """
    groups = [_logs(group) for group in _by_draw(trials)[0].values()]
    count = len(groups)
    own = variance(_logs(trials))
    if count == len(trials):
        return own * (runs + inflation / count), count - 1
    share = fmean([1 / len(group) for group in groups])
    excess = (
        max(0.0, variance([fmean(group) for group in groups]) - own * share) if count > 1 else 0.0
    )
    known = degrees + count - 1
    between = (degrees * deviation**2 + (count - 1) * excess) / known
    parts = [
        (between * (runs + 1 / count), known),
        (own * (runs + inflation * share / count), len(trials) - 1),
    ]
    return sum(part for part, _ in parts), satterthwaite(parts)


def draws_of(cells: Sequence[Sequence[Trial]]) -> list[int]:
    """The draw of each trial, cell by cell."""
    numbers = dict[int, int]()
    for draws in _by_draw(*cells):
        for draw, trials in draws.items():
            numbers.update(dict.fromkeys(map(id, trials), draw))
    return [numbers[id(trial)] for cell in cells for trial in cell]


def _by_draw(*cells: Sequence[Trial]) -> list[Draws]:
    """Each cell's trials by draw.

    Trials whose sets of hosts share one are one draw, over all these cells: the connected
    components of the hosts. Each trial on unknown hosts is a draw of its own.
    """
    label: dict[str, int] = {}
    for number, trial in enumerate(trial for trials in cells for trial in trials):
        joined = {label[host] for host in trial.hosts or () if host in label}
        if joined:
            label.update({host: number for host, draw in label.items() if draw in joined})
        label.update(dict.fromkeys(trial.hosts or (), number))
    unknown = sum(map(len, cells))
    draws_of_cells: list[Draws] = []
    for trials in cells:
        draws: Draws = {}
        for trial in trials:
            unknown += 1
            draws.setdefault(label[min(trial.hosts)] if trial.hosts else unknown, []).append(trial)
        draws_of_cells.append(draws)
    return draws_of_cells


def _logs(trials: Iterable[Trial]) -> list[float]:
    return [log(trial.value) for trial in trials]


def blocks_of(trials: Sequence[Trial], *, by_job: bool = True) -> Blocks:
    """Logarithms by pass of a shared job, or by round; of repeats in a round their mean.

    A trial without a round has one of its own. Without ``by_job``, all are by round.
    """
    blocks: dict[str, list[Trial]] = {}
    for trial in trials:
        block = trial.block or f"alone {id(trial)}"
        blocks.setdefault(
            f"{trial.job} {trial.block}" if by_job and trial.job is not None else block, []
        ).append(trial)
    return {block: _in_block(alike, by_job=by_job) for block, alike in blocks.items()}


def _in_block(alike: Sequence[Trial], *, by_job: bool) -> InBlock:
    """The repeats of a cell in one block; a job stands for hosts that are unknown."""
    return InBlock(
        value=fmean(_logs(alike)),
        place=alike[0].place if by_job and alike[0].job else None,
        hosts=frozenset(
            host for trial in alike for host in trial.hosts or filter(None, [trial.job])
        ),
    )
