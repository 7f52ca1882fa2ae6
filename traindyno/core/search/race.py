"""The race: the cells of a group run once in one job, and the leaders again.

Runs on Python 3.8 (frozen images), with the standard library only: the parent process of a shared
job, or its simulation, picks the cells that run again in it.

Runs of one job are on one draw of hosts, so that their differences are those of the cells, within
the noise of a run. A cell in another job may also differ by its hosts.
"""

from math import hypot, log
from typing import Dict, List, Mapping, NamedTuple, Sequence

from traindyno.core.search.outpaced import Pace
from traindyno.core.search.run_scatter import RunScatter

#: Of one job, the best ones.
MOST_CONTENDERS = 6
#: Hosts of two jobs may differ by so many standard deviations.
HOST_DEVIATIONS = 2.0
#: Each contender runs again forward and backward: a drift over the job cancels.
PASSES = 2


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
    for racer in sorted(racers, key=lambda each: each.value):
        jobs.setdefault(racer.job, []).append(racer)
    leader = min(racers, key=lambda each: each.value, default=None)
    return [
        racer.cell_id
        for of_job in jobs.values()
        for racer in of_job[:MOST_CONTENDERS]
        if leader and may_win(racer, of_job[0]) and may_win(racer, leader)
    ]


def contenders_in_job(paces: Mapping[str, Pace], scatter: RunScatter) -> List[str]:
    """The ids of the runs whose cells run again in the job itself; ``paces``: of those that
    completed.

    Where other work may stall runs, a cell is left out if it is behind by its quick steps too.
    """
    values = [{run_id: pace.seconds_per_sample for run_id, pace in paces.items()}]
    if scatter.has_stalls:
        values.append({run_id: pace.quick_seconds_per_sample for run_id, pace in paces.items()})
    found: Dict[str, None] = {}
    for by in values:
        racers = [Racer(run_id, job="", value=value) for run_id, value in by.items()]
        found.update(dict.fromkeys(pick_contenders(racers, within=scatter.within())))
    return list(found)[:MOST_CONTENDERS]
