"""The steps that take far longer than those around them, by length: what a tail of rare, longer ones may hold."""

from collections.abc import Iterable
from dataclasses import dataclass

from traindyno.core.measurement.recurrence import are_alike


@dataclass(frozen=True, slots=True, kw_only=True)
class LongSteps:
    """``count`` steps of about one length: each is at most three times as long as the next shorter one.

    ``seconds`` is what they take together beyond their level; the shortest and the longest of them are given, too.
    """

    count: int
    seconds: float
    shortest: float
    longest: float

    @property
    def beyond_mean(self) -> float:
        """By how much the longest one exceeds their mean: 0 for one step, and for equal ones."""
        return self.longest - self.seconds / self.count

    def plus(self, other: "LongSteps") -> "LongSteps":
        return LongSteps(
            count=self.count + other.count,
            seconds=self.seconds + other.seconds,
            shortest=min(self.shortest, other.shortest),
            longest=max(self.longest, other.longest),
        )


def group_long_steps(excesses: Iterable[float]) -> tuple[LongSteps, ...]:
    """``excesses``: by how many seconds each long step exceeds its level."""
    return join_alike(LongSteps(count=1, seconds=each, shortest=each, longest=each) for each in excesses if each > 0)


def join_alike(groups: Iterable[LongSteps]) -> tuple[LongSteps, ...]:
    """Groups of several runs, or of one: those of about one length become one."""
    found: list[LongSteps] = []
    for group in sorted(groups, key=lambda each: each.shortest):
        if found and (group.shortest <= found[-1].longest or are_alike(group.shortest, found[-1].longest)):
            found[-1] = found[-1].plus(group)
        else:
            found.append(group)
    return tuple(found)
