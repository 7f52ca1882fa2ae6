"""By how much single runs of one cell scatter on a kind of machine: assumed, or measured before.

Runs on Python 3.8 (frozen images), with the standard library only: the parent process of a shared
job judges by it. A few trials in a row tell little of it, because they share what disturbs them.
"""

from dataclasses import dataclass
from math import hypot, sqrt
from typing import Optional

#: Standard deviations of a single run, as a share of its time.
ACCELERATORS = 0.01
CPUS = 0.03
THIS_MACHINE = 0.12
#: What seeds add to the time or the cost until a quality.
SEEDS = 0.08
#: The assumption counts like trials with so many degrees of freedom.
KNOWN_DEGREES = 4
#: Student's t with ``KNOWN_DEGREES``, at 97.5 %.
DEVIATIONS = 2.776
#: No cell that was not a contender is as near as this share; for a quality the share is larger.
NONE_NEARER = 0.05
NONE_NEARER_OF_QUALITY = 0.1
#: Where other work stalls runs, one run shows that its cell is behind only by this share.
BEHIND_IN_ONE_RUN = 2.0
#: Each contender runs again forward and backward: a drift over the job cancels. Where other work
#: stalls runs, a job's start takes as long as three of them, and few settle nothing.
PASSES = 2
PASSES_OF_STALLED = 4
LOCAL = "local."
ACCELERATED = ("ml.g", "ml.p", "ml.trn", "ml.inf")


@dataclass(frozen=True, order=True)
class RunScatter:
    """The standard deviation of a single run, as a share.

    ``has_stalls`` says that other work may hold up runs, so that one is behind only if its quick
    steps are too. ``nearer``: no cell is said to be as near as this share of the best one, unless a
    single run of it is further behind than ``within``, which is at so many ``deviations``.
    """

    share: float
    has_stalls: bool = False
    nearer: float = NONE_NEARER
    deviations: float = DEVIATIONS

    @property
    def passes(self) -> int:
        """How often a contender runs again in one job."""
        return PASSES_OF_STALLED if self.has_stalls else PASSES

    def within(self, runs: int = 1) -> float:
        """A cell that was measured once may be as good as the best one, of ``runs``, if it is
        behind it by no more than this share.
        """
        of_runs = self.nearer + self.deviations * self.share * sqrt(1 + 1 / runs)
        return max(of_runs, BEHIND_IN_ONE_RUN) if self.has_stalls else of_runs


NO_SCATTER = RunScatter(0.0)


def run_scatter(
    instance_type: str, measured: Optional[float] = None, *, has_target: bool = False
) -> RunScatter:
    """The scatter of single runs on this type of instance.

    ``measured`` replaces the assumption for this machine's own types. With ``has_target``, the
    scatter is that of the time or the cost until a quality.
    """
    is_local = instance_type.startswith(LOCAL)
    share = ACCELERATORS if instance_type.startswith(ACCELERATED) else CPUS
    if is_local:
        share = measured or THIS_MACHINE
    if has_target:
        return RunScatter(hypot(share, SEEDS), is_local, NONE_NEARER_OF_QUALITY)
    return RunScatter(share, is_local)


def measured_scatter(text: object) -> Optional[float]:
    """The scatter that was measured; None unless ``text`` is a share.

    The text is that of the job's variable ``SCATTER_VARIABLE``, or of the same fact of a run's
    environment.
    """
    try:
        share = float(str(text))
    except ValueError:
        return None
    return share if 0 < share < 1 else None
