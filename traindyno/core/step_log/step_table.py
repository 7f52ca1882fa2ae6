"""The steps that all ranks of a session finished, as columns over all ranks."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from traindyno.core.step_log.content import Phase, Session, Step

OUTSIDE_TRAINING = ("evaluate", "save")


@dataclass(frozen=True, kw_only=True)
class RankSteps:
    """One rank's share: its steps in the table's order, and its phases."""

    rank: int
    steps: Sequence[Step]
    phases: Sequence[Phase]

    def window_seconds(self, first: int, last: int) -> float:
        """From the begin of step ``first`` to the end of step ``last``, without evaluating and saving in between."""
        begin, end = self.steps[first].begin, self.steps[last].end
        outside = (phase for phase in self.phases if phase.name in OUTSIDE_TRAINING)
        return end - begin - sum(self._between_steps(phase, first, last) for phase in outside)

    def _between_steps(self, phase: Phase, first: int, last: int) -> float:
        window = self.steps[first : last + 1]
        pairs = pairwise(window)
        return sum(
            max(0.0, min(after.begin, phase.end) - max(before.end, phase.begin))
            for before, after in pairs
            if before.end < phase.end and phase.begin < after.begin
        )


@dataclass(frozen=True, kw_only=True)
class StepTable:
    numbers: Sequence[int]
    ranks: Sequence[RankSteps]

    def __len__(self) -> int:
        return len(self.numbers)

    @cached_property
    def slowest_seconds(self) -> list[float]:
        """Per step, the longest begin-to-end time of any rank, waiting for data included."""
        columns = ([step.end - step.begin for step in rank.steps] for rank in self.ranks)
        return [max(seconds) for seconds in zip(*columns, strict=True)]

    @cached_property
    def samples(self) -> list[int]:
        """Per step, what all ranks together processed."""
        columns = ([step.samples for step in rank.steps] for rank in self.ranks)
        return [sum(samples) for samples in zip(*columns, strict=True)]

    @cached_property
    def tokens(self) -> list[int] | None:
        """Per step, over all ranks; None if any step of any rank didn't count them."""
        total = [0] * len(self)
        for rank in self.ranks:
            for index, step in enumerate(rank.steps):
                if step.tokens is None:
                    return None
                total[index] += step.tokens
        return total

    def wait_share(self, first: int, last: int) -> float:
        """Time spent waiting for data ÷ window time, both summed over the ranks."""
        waited = sum(step.wait_seconds for rank in self.ranks for step in rank.steps[first : last + 1])
        return waited / sum(rank.window_seconds(first, last) for rank in self.ranks)


def tabulate_steps(session: Session) -> StepTable:
    numbers = session.common_steps
    wanted = set(numbers)
    ranks = [
        RankSteps(
            rank=process.rank,
            steps=[step for step in process.steps if step.step in wanted],
            phases=process.phases,
        )
        for process in session.processes
    ]
    return StepTable(numbers=numbers, ranks=ranks)
