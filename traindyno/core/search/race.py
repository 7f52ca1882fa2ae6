"""The race: the cells of a group run once in one job, and the leaders again.

Runs on Python 3.8 (frozen images), with the standard library only: the parent process of a shared
job, or its simulation, picks the cells that run again in it.

Runs of one job are on one draw of hosts, so that their differences are those of the cells, within
the noise of a run. A cell in another job may also differ by its hosts.
"""

from math import hypot, log
from typing import Dict, List, Mapping, NamedTuple, Sequence

#: A cell that was measured once is a contender if it is behind the best one by no more than this
#: share. Of the time or the cost until a quality it is more: published ones of one system scatter
#: by 4 to 13 % from seed to seed.
WITHIN, WITHIN_OF_QUALITY = 0.08, 0.3
#: What is said of the cells that were not contenders: none is as near as this. The difference is
#: for the scatter of the runs that dropped them.
NONE_NEARER, NONE_NEARER_OF_QUALITY = 0.05, 0.1
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


def pick_contenders(racers: Sequence[Racer], *, within: float = WITHIN) -> List[str]:
    """The ids of the cells that run again: the best one, and those that may be as good; of each job
    the best first.

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


def contenders_in_job(seconds_per_sample: Mapping[str, float]) -> List[str]:
    """The ids of the runs whose cells run again in the job itself; ``seconds_per_sample``: of those
    that completed.
    """
    return pick_contenders(
        [Racer(run_id, job="", value=value) for run_id, value in seconds_per_sample.items()]
    )
