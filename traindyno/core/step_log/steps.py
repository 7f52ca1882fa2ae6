"""The steps of one process as columns: a run has millions of them, and a column takes 4 or 8 bytes of each."""

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from math import isnan, nan
from operator import add
from typing import Final, Generic, TypeVar, overload

from traindyno.core.step_log.fields import LoggedStep

NARROW: Final = "f"
WIDE: Final = "d"
Numbers = Sequence[float]


class NumberColumn:
    __slots__ = ("values",)

    def __init__(self) -> None:
        self.values = array(NARROW)

    def append(self, value: float) -> None:
        self.values.append(value)
        if self.values.typecode == NARROW and self.values[-1] != value and not isnan(value):
            self.values = array(WIDE, self.values)
            self.values[-1] = value

    def within(self, first: int, end: int) -> Numbers:
        return memoryview(self.values)[first:end]


class EndTimes:
    """When steps began, and when they ended: their lengths, or their ends where a length is not exact."""

    __slots__ = ("_ends", "_lengths", "begins")

    def __init__(self) -> None:
        self.begins, self._lengths = array(WIDE), array(NARROW)
        self._ends: array[float] | None = None

    def append(self, begin: float, end: float) -> None:
        self.begins.append(begin)
        if self._ends is None:
            self._lengths.append(end - begin)
            if begin + self._lengths[-1] == end:
                return
            self._ends = array(WIDE, map(add, self.begins[:-1], self._lengths))
            self._lengths = array(NARROW)
        self._ends.append(end)

    def ends(self, first: int, end: int) -> Numbers:
        if self._ends is not None:
            return memoryview(self._ends)[first:end]
        return Sums(memoryview(self.begins)[first:end], memoryview(self._lengths)[first:end])


class Sums(Sequence[float]):
    """The sums of two columns, made when they are asked for."""

    __slots__ = ("_left", "_right")

    def __init__(self, left: Numbers, right: Numbers) -> None:
        self._left, self._right = left, right

    def __len__(self) -> int:
        return len(self._left)

    @overload
    def __getitem__(self, index: int) -> float: ...
    @overload
    def __getitem__(self, index: slice) -> "Sums": ...
    def __getitem__(self, index: int | slice) -> "float | Sums":
        if isinstance(index, slice):
            return Sums(self._left[index], self._right[index])
        return self._left[index] + self._right[index]

    def __iter__(self) -> Iterator[float]:
        return map(add, self._left, self._right)


Value = TypeVar("Value")


class RepeatedValues(Generic[Value]):
    """A column of values most of which equal the one before, of which only the others are kept."""

    __slots__ = ("_starts", "_values")

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._values: list[Value] = []

    def append(self, index: int, value: Value) -> None:
        if not self._values or self._values[-1] != value:
            self._starts.append(index)
            self._values.append(value)

    def __getitem__(self, index: int) -> Value:
        return self._values[bisect_right(self._starts, index) - 1]

    def within(self, first: int, end: int) -> Iterator[tuple[int, Value]]:
        """The values of ``first`` to ``end``, each with the number of steps that have it one after another."""
        for position in range(bisect_right(self._starts, first) - 1, len(self._starts)):
            begin = max(first, self._starts[position])
            if begin >= end:
                return
            last = self._starts[position + 1] if position + 1 < len(self._starts) else end
            yield min(end, last) - begin, self._values[position]


class _Columns:
    __slots__ = ("counts", "loss_counts", "losses", "offsets", "peaks", "samples", "stride", "times", "tokens", "waits")

    def __init__(self, stride: int) -> None:
        self.stride, self.counts = stride, RepeatedValues[int]()
        # Number of a step - its index × stride: one value if no number is left out
        self.offsets = RepeatedValues[int]()
        self.times, self.waits = EndTimes(), NumberColumn()
        self.losses, self.loss_counts = NumberColumn(), RepeatedValues[int]()
        self.samples, self.tokens, self.peaks = (
            RepeatedValues[int](),
            RepeatedValues[int | None](),
            RepeatedValues[int | None](),
        )


class Steps(Sequence[LoggedStep]):
    """A step is made from the columns when it is asked for. A slice is a view.

    ``stride``: so many neighbouring steps are one here (``thinning``); ``counts`` says how many each is, and
    ``loss_counts`` how many of these had a loss.
    """

    __slots__ = ("_columns", "_end", "_first")

    def __init__(self, steps: Iterable[LoggedStep] = (), *, stride: int = 1) -> None:
        self._columns, self._first, self._end = _Columns(stride), 0, 0
        for step in steps:
            self.append(step)

    def append(self, step: LoggedStep, *, count: int = 1, loss_count: int = 1) -> None:
        columns, index = self._columns, self._end
        columns.offsets.append(index, step.step - index * columns.stride)
        columns.counts.append(index, count)
        columns.times.append(step.begin, step.end)
        columns.waits.append(step.wait_seconds)
        columns.losses.append(nan if step.loss is None else step.loss)
        columns.loss_counts.append(index, 0 if step.loss is None else loss_count)
        columns.samples.append(index, step.samples)
        columns.tokens.append(index, step.tokens)
        columns.peaks.append(index, step.peak_memory_bytes)
        self._end += 1

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
        columns = self._columns
        return LoggedStep(
            step=columns.offsets[at] + at * columns.stride,
            begin=columns.times.begins[at],
            end=columns.times.ends(at, at + 1)[0],
            wait_seconds=columns.waits.values[at],
            samples=columns.samples[at],
            tokens=columns.tokens[at],
            loss=columns.losses.values[at] if columns.loss_counts[at] else None,
            peak_memory_bytes=columns.peaks[at],
        )

    def _view(self, first: int, end: int) -> "Steps":
        view = Steps.__new__(Steps)
        view._columns, view._first, view._end = self._columns, self._first + first, self._first + end
        return view

    def numbered(self, numbers: Sequence[int]) -> "Steps":
        """Select the steps with these ascending numbers; a view if no step between them is left out."""
        own = self.numbers
        if not numbers:
            return self._view(0, 0)
        first, end = bisect_right(own, numbers[0]) - 1, bisect_right(own, numbers[-1])
        if end - first == len(numbers):
            return self._view(first, end)
        wanted, found = set(numbers), Steps(stride=self.stride)
        for step, count, loss_count in self._view(first, end).entries():
            if step.step in wanted:
                found.append(step, count=count, loss_count=loss_count)
        return found

    def entries(self) -> Iterator[tuple[LoggedStep, int, int]]:
        """Each step with how many it is, and how many of these had a loss."""
        return zip(self, self.counts, self.loss_counts, strict=True)

    @property
    def numbers(self) -> Sequence[int]:
        runs = list(self._columns.offsets.within(self._first, self._end)) if len(self) else []
        if len(runs) <= 1:
            offset = runs[0][1] if runs else 0
            return range(self._first * self.stride + offset, self._end * self.stride + offset, self.stride)
        offsets = _spread(self._columns.offsets, self._first, self._end)
        return [offset + index * self.stride for index, offset in enumerate(offsets, self._first)]

    @property
    def first_number(self) -> int:
        """Number of the first logged step; a merged step has the number of its last one."""
        return self[0].step - next(self.counts) + 1

    @property
    def stride(self) -> int:
        return self._columns.stride

    @property
    def counts(self) -> Iterator[int]:
        return _spread(self._columns.counts, self._first, self._end)

    @property
    def begins(self) -> Numbers:
        return memoryview(self._columns.times.begins)[self._first : self._end]

    @property
    def ends(self) -> Numbers:
        return self._columns.times.ends(self._first, self._end)

    @property
    def waits(self) -> Numbers:
        return self._columns.waits.within(self._first, self._end)

    @property
    def losses(self) -> Iterator[float | None]:
        known = self.loss_counts
        values = self._columns.losses.within(self._first, self._end)
        return (loss if is_known else None for loss, is_known in zip(values, known, strict=True))

    @property
    def loss_counts(self) -> Iterator[int]:
        return _spread(self._columns.loss_counts, self._first, self._end)

    @property
    def samples(self) -> Iterator[int]:
        return _spread(self._columns.samples, self._first, self._end)

    @property
    def tokens(self) -> Iterator[int | None]:
        return _spread(self._columns.tokens, self._first, self._end)

    @property
    def peak_memory_bytes(self) -> int | None:
        """The most of any step; None if no step reports it."""
        peaks = (peak for _, peak in self._columns.peaks.within(self._first, self._end))
        return max((peak for peak in peaks if peak), default=None)


def _spread(column: RepeatedValues[Value], first: int, end: int) -> Iterator[Value]:
    return (value for count, value in column.within(first, end) for _ in range(count)) if end > first else iter(())
