"""The lines whose highest is the memory of a step at its peak, by the steps of two batches.

``Levels`` [E] are the bytes held after each event of the steps, in their order.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

Levels = NDArray[np.int64]


def lines_through(levels: Mapping[int, Levels]) -> tuple[tuple[float, float], ...] | None:
    """The lines that memory follows over the batch, through its levels at two batches.

    Returns:
        For each line that is the highest of all at some batch, by slope, its bytes at a batch of 0
        and its bytes per sample. None if the events of the two batches differ.
    """
    (first, low), (second, high) = levels.items()
    if len(low) != len(high) or (np.sign(np.diff(low)) != np.sign(np.diff(high))).any():
        return None
    slopes = (high - low) / (second - first)
    bases = low - slopes * first
    highest = list[tuple[float, float]]()
    for index in np.lexsort((bases, slopes)):
        line = float(bases[index]), float(slopes[index])
        if highest and highest[-1][1] == line[1]:
            highest.pop()
        while highest and _is_hidden(highest, line):
            highest.pop()
        highest.append(line)
    return tuple(highest)


def _is_hidden(lower: list[tuple[float, float]], line: tuple[float, float]) -> bool:
    """Whether the steepest of ``lower``, which are in order, is nowhere above both neighbours at a
    positive batch.
    """
    base, slope = lower[-1]
    new_base, new_slope = line
    meeting = (base - new_base) / (new_slope - slope)
    if meeting <= 0:
        return True
    if len(lower) == 1:
        return False
    before_base, before_slope = lower[-2]
    return meeting <= (before_base - base) / (slope - before_slope)
