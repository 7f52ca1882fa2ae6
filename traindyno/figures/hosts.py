"""How far hosts differ: they are drawn at random, and some are faster."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum

# Degrees of freedom of a variance that no trials estimate; a document holds no infinity.
KNOWN = 1e9
# A run that waits for its data for a larger share of its time is bound by its input.
INPUT_BOUND_SHARE = 0.1


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

    def gives_way(self, shown: float, known: float) -> bool:
        """Whether draws that show this variance count alone, and not the deviation ``known``."""
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class AnyHosts(HostSpread):
    """Of machines of any kind: draws that show more count alone."""

    def gives_way(self, shown: float, known: float) -> bool:
        return shown > known**2


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
ANY_HOSTS = AnyHosts(**asdict(STATED_PRIOR))


def host_class(host_count: int, data_wait_share: float | None) -> HostClass:
    if (data_wait_share or 0.0) > INPUT_BOUND_SHARE:
        return HostClass.INPUT_BOUND
    return HostClass.MANY_HOSTS if host_count > 1 else HostClass.ONE_HOST
