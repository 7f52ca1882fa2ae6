"""The steps that all ranks of a session finished, as columns over all ranks."""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from math import inf
from operator import sub

from traindyno.core.step_log.content import Session
from traindyno.core.step_log.fields import LoggedPhase
from traindyno.core.step_log.steps import Steps


def phases_apart(phases: Iterable[LoggedPhase]) -> tuple[LoggedPhase, ...]:
    """The phases in order of time, without those in the background.

    Each moment belongs to the phase that began last. A phase that contains others is returned in
    parts, so that no second counts twice.
    """
    own = [phase for phase in phases if not phase.is_in_background]
    open_phases = _OpenPhases()
    parts = [
        part
        for phase in sorted(own, key=lambda phase: (phase.begin, -phase.end))
        for part in open_phases.parts_before(phase)
    ]
    return (*parts, *open_phases.parts_until(inf))


class _OpenPhases:
    """The phases that have begun and not ended, the innermost last; the time before ``_now`` is
    already divided.
    """

    def __init__(self) -> None:
        self._open: list[LoggedPhase] = []
        self._now = -inf

    def parts_before(self, phase: LoggedPhase) -> Iterator[LoggedPhase]:
        yield from self.parts_until(phase.begin)
        self._open.append(phase)
        self._now = max(self._now, phase.begin)

    def parts_until(self, time: float) -> Iterator[LoggedPhase]:
        while self._open:
            phase = self._open[-1]
            begin = max(self._now, phase.begin)
            end = min(phase.end, time)
            if end > begin or phase.begin == phase.end:
                yield replace(phase, begin=begin, end=max(begin, end))
                self._now = max(begin, end)
            if phase.end > time:
                return
            self._open.pop()


@dataclass(frozen=True, kw_only=True)
class RankSteps:
    """One rank's share: its steps in the table's order, and its phases, of which no two overlap.

    The interval of a step goes from the end of the step before it to its own end; the first one
    begins with its step. The intervals cover the time from the first step to the last without gaps,
    with all work between the steps.
    """

    rank: int
    steps: Steps
    phases: Sequence[LoggedPhase]

    def interval_begin(self, index: int) -> float:
        """Epoch seconds."""
        return self.steps.ends[index - 1] if index else self.steps.begins[0]

    def interval_begins(self) -> Iterator[float]:
        return chain(self.steps.begins[:1], self.steps.ends[:-1])

    def wall_seconds(self, first: int, last: int) -> float:
        """The intervals of the steps ``first`` to ``last`` together."""
        return self.steps.ends[last] - self.interval_begin(first)

    def phases_by_interval(self) -> Mapping[int, Mapping[str, float]]:
        """Seconds of each phase within each interval that has any, by index and name."""
        ends = self.steps.ends
        seconds_by_step: dict[int, dict[str, float]] = {}
        for phase in self.phases:
            for index in range(bisect_right(ends, phase.begin), len(ends)):
                begin = self.interval_begin(index)
                if begin >= phase.end:
                    break
                seconds = min(ends[index], phase.end) - max(begin, phase.begin)
                if seconds > 0:
                    by_name = seconds_by_step.setdefault(index, {})
                    by_name[phase.name] = by_name.get(phase.name, 0.0) + seconds
        return seconds_by_step

    def wait_seconds(self, first: int, last: int) -> float:
        """Time spent waiting for data in these steps.

        Phases that were logged within a wait do not count as waiting.
        """
        steps = self.steps[first : last + 1]
        begins = steps.begins
        waits = steps.waits
        waited: float = sum(waits)
        for phase in self.phases if waited else ():
            position = max(0, bisect_right(begins, phase.begin) - 1)
            for begin, wait in zip(begins[position:], waits[position:], strict=True):
                if begin >= phase.end:
                    break
                waited -= max(0.0, min(begin + wait, phase.end) - max(begin, phase.begin))
        return max(0.0, waited)


@dataclass(frozen=True, kw_only=True)
class StepTable:
    numbers: Sequence[int]
    ranks: Sequence[RankSteps]

    def __len__(self) -> int:
        return len(self.numbers)

    @cached_property
    def slowest_seconds(self) -> Sequence[float]:
        """The longest begin-to-end time of any rank for each step, with the wait for data."""
        columns = (map(sub, rank.steps.ends, rank.steps.begins) for rank in self.ranks)
        return array("d", map(max, zip(*columns, strict=True)))

    @cached_property
    def interval_seconds(self) -> Sequence[float]:
        """The longest interval of any rank for each step, with logged phases."""
        columns = (map(sub, rank.steps.ends, rank.interval_begins()) for rank in self.ranks)
        return array("d", map(max, zip(*columns, strict=True)))

    @cached_property
    def phases_by_interval(self) -> Mapping[int, Mapping[str, float]]:
        """Seconds of each phase by index of the interval and name, on the rank that spent the most
        on phases in it.

        The other ranks wait for that rank, often within their next step.
        """
        longest: dict[int, Mapping[str, float]] = {}
        for rank in self.ranks:
            for index, by_name in rank.phases_by_interval().items():
                if sum(by_name.values()) > sum(longest.get(index, {}).values()):
                    longest[index] = by_name
        return dict(sorted(longest.items()))

    @cached_property
    def step_seconds(self) -> Sequence[float]:
        """The interval of each step without the logged phases: the input of the analysis of step
        times.
        """
        seconds = array("d", self.interval_seconds)
        for index, by_name in self.phases_by_interval.items():
            seconds[index] = max(0.0, seconds[index] - sum(by_name.values()))
        return seconds

    @cached_property
    def samples(self) -> list[int]:
        """The samples of each step, over all ranks."""
        columns = (rank.steps.samples for rank in self.ranks)
        return [sum(samples) for samples in zip(*columns, strict=True)]

    @cached_property
    def tokens(self) -> list[int] | None:
        """The tokens of each step, over all ranks; None if any step of any rank didn't count
        them.
        """
        total = [0] * len(self)
        for rank in self.ranks:
            for index, tokens in enumerate(rank.steps.tokens):
                if tokens is None:
                    return None
                total[index] += tokens
        return total

    def wall_seconds(self, first: int, last: int) -> float:
        """The time from the end of the step before ``first`` to the end of ``last``, on the rank
        that took longest.
        """
        return max(rank.wall_seconds(first, last) for rank in self.ranks)

    def wait_share(self, first: int, last: int) -> float:
        """Time spent waiting for data ÷ wall time, both summed over the ranks."""
        waited = sum(rank.wait_seconds(first, last) for rank in self.ranks)
        return waited / sum(rank.wall_seconds(first, last) for rank in self.ranks)

    def phases_after_steps(self) -> frozenset[str]:
        """Names of the phases that begin when the last step has ended."""
        return frozenset(
            phase.name
            for rank in self.ranks
            for phase in rank.phases
            if phase.begin >= rank.steps[-1].end
        )


def tabulate_steps(session: Session, among: range | None = None) -> StepTable:
    """The steps that every process of the session finished; later ones of a single rank are left
    out.

    ``among``: only steps of these numbers.
    """
    numbers = session.common_steps
    if among is not None:
        numbers = numbers[bisect_left(numbers, among.start) : bisect_left(numbers, among.stop)]
    ranks = [
        RankSteps(
            rank=process.rank,
            steps=process.steps.numbered(numbers),
            phases=phases_apart(process.phases),
        )
        for process in session.processes
    ]
    return StepTable(numbers=numbers, ranks=ranks)
