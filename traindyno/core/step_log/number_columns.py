"""Columns of numbers that take 4 bytes each as long as these give back every number exactly, and 8 bytes after that.

A logged time is a multiple of 2**-22 s, because epoch seconds have 31 bits before the point and a float has 53: 4 bytes
hold a wait or the length of a step below 4 s. A loss that PyTorch computed in 32 bits fits as well.
"""

from array import array
from collections.abc import Iterator, Sequence
from math import isnan
from operator import add
from typing import Final, overload

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
