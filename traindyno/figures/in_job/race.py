"""The race: the cells of a group run once in one job, and the leaders again.

Runs on Python 3.8 (frozen images), with the standard library only: the parent process of a shared
job, or its simulation, picks the cells that run again in it.

Runs of one job are on one draw of hosts, so that their differences are those of the cells, within
the noise of a run. A cell in another job may also differ by its hosts.
"""

from math import hypot, log, sqrt
from statistics import fmean
from typing import Dict, List, Mapping, NamedTuple, Sequence

from traindyno.figures.in_job.outpaced import Pace
from traindyno.figures.in_job.run_scatter import RunScatter

#: A job runs so many contenders again, the best ones.
MOST_CONTENDERS = 6
#: Hosts of two jobs may differ by so many standard deviations.
HOST_DEVIATIONS = 2.0
#: Standard errors between the means of as many runs of two cells, from which on the tests tell them
#: apart.
TOLD_APART = 4.0


class Racer(NamedTuple):
    """A cell that ran to its end once. ``value``: what the goal minimises.

    ``job`` carried the run. ``host_deviation``: the standard deviation of the speed of its hosts,
    as a share.
    """

    cell_id: str
    job: str
    value: float
    host_deviation: float = 0.0


def pick_contenders(racers: Sequence[Racer], *, within: float) -> List[str]:
    """The ids of the cells that run again: the best one, and those that are ``within`` a share of
    it; of each job the best first.

    A job whose best cell can't win, even if its hosts were slow, has none. There are none at all
    without racers.
    """

    def may_win(racer: Racer, best: Racer) -> bool:
        between = (
            0.0
            if racer.job == best.job
            else HOST_DEVIATIONS * hypot(racer.host_deviation, best.host_deviation)
        )
        return log(racer.value / best.value) <= max(log(1 + within), between)

    jobs: Dict[str, List[Racer]] = {}
    for racer in sorted(racers, key=lambda racer: racer.value):
        jobs.setdefault(racer.job, []).append(racer)
    leader = min(racers, key=lambda racer: racer.value, default=None)
    return [
        racer.cell_id
        for of_job in jobs.values()
        for racer in of_job[:MOST_CONTENDERS]
        if leader and may_win(racer, of_job[0]) and may_win(racer, leader)
    ]


def contenders_in_job(
    paces: Mapping[str, Sequence[Pace]], scatter: RunScatter, runs: int = 1
) -> List[str]:
    """The ids of the first runs of the cells that run again in the job itself, after so many
    ``runs`` of each; ``paces``: by these ids, of the runs that completed.

    Where other work may stall runs, a cell is left out after one run if it is behind by its quick
    steps too, and later once the tests tell it apart: it is compared, but runs no more.
    """
    if runs > 1 and scatter.has_stalls:
        levels = {
            first: fmean([log(pace.seconds_per_sample) for pace in own[:runs]])
            for first, own in paces.items()
            if len(own) >= runs
        }
        apart = TOLD_APART * scatter.share * sqrt(2 / runs)
        near = [first for first in levels if levels[first] <= min(levels.values()) + apart]
        return near if len(near) > 1 else []
    contenders: List[str] = []
    for by in ("seconds_per_sample", "quick_seconds_per_sample")[: 1 + scatter.has_stalls]:
        values = {first: getattr(own[0], by) for first, own in paces.items()}
        racers = [Racer(first, job="", value=value) for first, value in values.items() if value]
        contenders += pick_contenders(racers, within=scatter.within())
    return list(dict.fromkeys(contenders))[:MOST_CONTENDERS]
