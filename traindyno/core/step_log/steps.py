"""The steps of one process as columns: a run has many of them, and a column takes 8 bytes of
each.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, overload

from traindyno.core.step_log.line import LoggedStep

# Steps that are read of one process; later ones say nothing new about its rate.
MOST_STEPS = 1_000_000
NONE = -1


class Steps(Sequence[LoggedStep]):
    """A step is made from the columns when it is asked for.

    A slice is a view. ``is_full``: later steps were left out.
    """

    __slots__ = ("_columns", "_end", "_first", "is_full")

    def __init__(self, steps: Iterable[LoggedStep] = ()) -> None:
        self._columns: tuple[Any, ...] = (
            *(array(code) for code in "qdddqq"),
            list[float | None](),
            array("q"),
        )
        self._first = self._end = 0
        self.is_full = False
        for step in steps:
            self.append(step)

    def append(self, step: LoggedStep) -> None:
        if self._end >= MOST_STEPS:
            self.is_full = True
            return
        known = (*step[:5], NONE if step.tokens is None else step.tokens, step.loss)
        peak = NONE if step.peak_memory_bytes is None else step.peak_memory_bytes
        for column, value in zip(self._columns, (*known, peak), strict=True):
            column.append(value)
        self._end += 1

    def keep_until(self, number: int) -> int:
        """Forget the steps after this one; return how many are left."""
        self._end = bisect_right(self._columns[0], number)
        for column in self._columns:
            del column[self._end :]
        return self._end

    def __len__(self) -> int:
        return self._end - self._first

    @overload
    def __getitem__(self, index: int) -> LoggedStep: ...
    @overload
    def __getitem__(self, index: slice) -> "Steps": ...
    def __getitem__(self, index: int | slice) -> "LoggedStep | Steps":
        if isinstance(index, slice):
            first, end, stride = index.indices(len(self))
            assert stride == 1, "a view has all steps between its ends"
            return self._view(first, max(first, end))
        at = self._first + range(len(self))[index]
        step, begin, end, wait, samples, tokens, loss, peak = (
            column[at] for column in self._columns
        )
        return LoggedStep(step, begin, end, wait, samples, _known(tokens), loss, _known(peak))

    def _view(self, first: int, end: int) -> "Steps":
        view = Steps.__new__(Steps)
        view._columns = self._columns
        view._first = self._first + first
        view._end = self._first + end
        view.is_full = self.is_full
        return view

    def numbered(self, numbers: Sequence[int]) -> "Steps":
        """Select the steps with these ascending numbers; a view if no step between them is left
        out.
        """
        own = self.numbers
        if not numbers:
            return self._view(0, 0)
        first = bisect_left(own, numbers[0])
        end = bisect_right(own, numbers[-1])
        if end - first == len(numbers):
            return self._view(first, end)
        wanted = set(numbers)
        return Steps(step for step in self._view(first, end) if step.step in wanted)

    @property
    def numbers(self) -> Sequence[int]:
        column = self._within(0)
        is_whole = len(column) > 0 and column[-1] - column[0] + 1 == len(column)
        return range(column[0], column[-1] + 1) if is_whole else list(column)

    @property
    def begins(self) -> Sequence[float]:
        return self._within(1)

    @property
    def ends(self) -> Sequence[float]:
        return self._within(2)

    @property
    def waits(self) -> Sequence[float]:
        return self._within(3)

    @property
    def samples(self) -> Sequence[int]:
        return self._within(4)

    @property
    def tokens(self) -> Iterator[int | None]:
        return map(_known, self._within(5))

    @property
    def losses(self) -> Sequence[float | None]:
        logged: list[float | None] = self._columns[6][self._first : self._end]
        return logged

    @property
    def peak_memory_bytes(self) -> int | None:
        """The most of any step; None if no step reports it."""
        return max(0, *self._within(7), 0) or None

    def _within(self, column: int) -> Sequence[Any]:
        return memoryview(self._columns[column])[self._first : self._end]


def _known(value: int) -> int | None:
    return None if value == NONE else value
