"""By how much single runs of one cell scatter on a kind of machine: assumed, or measured before.

Runs on Python 3.8 (frozen images), with the standard library only: the parent process of a shared
job judges by it. A few repeats in a row tell little of it, because they share what disturbs them.
"""

from math import hypot, sqrt
from typing import NamedTuple, Optional

#: Standard deviations of a single run, as a share of its time.
ACCELERATORS, CPUS, THIS_MACHINE = 0.01, 0.03, 0.12
#: What seeds add to the time or the cost until a quality.
SEEDS = 0.08
#: The assumption counts like repeats with so many degrees of freedom.
KNOWN_DEGREES = 4
#: Student's t with ``KNOWN_DEGREES``, at 97.5 %.
DEVIATIONS = 2.776
#: What is said of the cells that were not contenders: none is as near as this share. Of the time or
#: the cost until a quality it is more.
NONE_NEARER, NONE_NEARER_OF_QUALITY = 0.05, 0.1
#: Where other work stalls runs, one run shows that its cell is behind only by this share.
BEHIND_IN_ONE_RUN = 1.0
LOCAL, ACCELERATED = "local.", ("ml.g", "ml.p", "ml.trn", "ml.inf")


def scatter_of(
    instance_type: str, measured: Optional[float] = None, *, has_target: bool = False
) -> float:
    """``measured``: of this machine's own types, in place of the assumption.

    ``has_target``: of the time or the cost until a quality.
    """
    if instance_type.startswith(LOCAL):
        of_runs = measured or THIS_MACHINE
    else:
        of_runs = ACCELERATORS if instance_type.startswith(ACCELERATED) else CPUS
    return hypot(of_runs, SEEDS) if has_target else of_runs


class RunScatter(NamedTuple):
    """Of one machine.

    ``has_stalls``: other work may hold up its runs, so that a run is behind only if its quick steps
    are too.
    """

    share: float
    has_stalls: bool = False

    def within(self, nearer: float = NONE_NEARER) -> float:
        """A cell that was measured once may be as good as the best one, if it is behind it by no
        more than this share.
        """
        of_runs = nearer + DEVIATIONS * sqrt(2.0) * self.share
        return max(of_runs, BEHIND_IN_ONE_RUN) if self.has_stalls else of_runs


def run_scatter(
    instance_type: str, measured: Optional[float] = None, *, has_target: bool = False
) -> RunScatter:
    share = scatter_of(instance_type, measured, has_target=has_target)
    return RunScatter(share, instance_type.startswith(LOCAL))


def measured_scatter(text: object) -> Optional[float]:
    """``text``: of the job's variable ``SCATTER_VARIABLE``, or of the same fact of a run's
    environment; None unless it is a share.
    """
    try:
        share = float(str(text))
    except ValueError:
        return None
    return share if 0 < share < 1 else None
