"""By how much single runs of one cell scatter on a kind of machine: assumed, or measured before.

Runs on Python 3.8 (frozen images), with the standard library only: the parent process of a shared
job judges by it. A few repeats in a row tell little of it, because they share what disturbs them.
"""

from math import hypot
from typing import Optional

#: Standard deviations of a single run, as a share of its time.
ACCELERATORS, CPUS, THIS_MACHINE = 0.01, 0.03, 0.12
#: What seeds add to the time or the cost until a quality.
SEEDS = 0.08
#: The assumption counts like repeats with so many degrees of freedom.
KNOWN_DEGREES = 4
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


def measured_scatter(text: object) -> Optional[float]:
    """``text``: of the job's variable ``SCATTER_VARIABLE``, or of the same fact of a run's
    environment; None unless it is a share.
    """
    try:
        share = float(str(text))
    except ValueError:
        return None
    return share if 0 < share < 1 else None
