"""Which batch is probed next, and which one is measured.

Runs on Python 3.8 (frozen images), with the standard library only: the parent process of a shared
job searches by it.

A batch fits if a few steps of the run with it end well. The search moves up from the first batch
until one does not fit, or down until one fits, and then bisects. It assumes that each batch below
one that fits fits too.
"""

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from math import isqrt
from typing import Optional, Sequence

#: Each costs the start of the run, and a few steps. The search goes on to ``FEW_PROBES`` where
#: there is more to find. They are enough if the largest batch is within a factor of four of the
#: first one; no start needs more than the most.
FEW_PROBES = 6
MOST_PROBES = 11
#: After ``FEW_PROBES``, a smaller share of the batch that fits is not searched.
LEAST_GAIN = 0.125
#: From the first batch, up or down: two by ``NEAR_FACTOR``, the others by ``FAR_FACTOR``, so up to
#: 1024 times as many.
MOST_MOVES = 6
NEAR_MOVES = 2
NEAR_FACTOR = 2
FAR_FACTOR = 4
MOST_TIMES = 1024
#: Steps of a probe. The rate is that of the steps after the first ones, which compile and allocate.
PROBE_STEPS = 8
PROBE_WARM_UP_STEPS = 3
#: Ends a probe of a script that logs no steps.
LONGEST_PROBE_SECONDS = 600.0
LARGEST = "largest"
BEST = "best"


@dataclass(frozen=True)
class Probe:
    """A few steps with one batch, and whether it fits.

    ``batch`` is in samples per device. ``fits`` says that the steps ended well, with memory to
    spare; False is a measurement of too little memory. ``retries`` are those of the CUDA allocator,
    in the process that had the most. ``peak_bytes`` is of the process that needed the most,
    ``samples_per_second`` of all processes; None if unknown.
    """

    batch: int
    fits: bool
    peak_bytes: Optional[int] = None
    samples_per_second: Optional[float] = None
    retries: int = 0


def has_room(has_worked: bool, retries: int) -> bool:
    """Whether a batch is for a long run, by a few steps of it.

    An allocator that had to free its cache and try again was at the limit of the memory: it is
    slower, and the next fragment may be the one for which freeing does not help.
    """
    return has_worked and not retries


def next_batch(probes: Sequence[Probe], first: int, possible: Sequence[int]) -> Optional[int]:
    """One of the ``possible`` batches, which are in order; None once the search has ended.

    What is found is less than the largest of them that fits by at most an eighth, and by at most a
    sixteenth if that is within a factor of two of ``first``. Where none is found, the smallest was
    probed.
    """
    fitting = largest_fitting(probes)
    failing = least_failing(probes)
    end = len(possible) if failing is None else bisect_left(possible, failing)
    left = possible[bisect_right(possible, fitting or 0) : end]
    if not left or len(probes) >= MOST_PROBES:
        return None
    factor = NEAR_FACTOR if len(probes) <= NEAR_MOVES else FAR_FACTOR
    if failing is None:
        most = first if fitting is None else fitting * factor
    elif fitting is None:
        # Where even the last move finds none, the smallest batch says whether any fits.
        most = left[0] if len(probes) > MOST_MOVES else failing // factor
    elif len(probes) >= FEW_PROBES and left[-1] - fitting <= LEAST_GAIN * fitting:
        return None
    else:
        # the middle; that of the logarithms while the two are further apart than by a factor of two
        most = (
            isqrt(fitting * failing)
            if failing > NEAR_FACTOR * fitting
            else (fitting + failing) // 2
        )
    return left[max(0, bisect_right(left, most) - 1)]


def chosen(probes: Sequence[Probe], choice: str) -> Optional[int]:
    """The batch that is measured; None if none of the probes fits.

    With ``best``, the highest rate decides.
    """
    fitting = [probe for probe in probes if probe.fits]
    if choice == BEST and fitting:
        return max(fitting, key=lambda probe: (probe.samples_per_second or 0.0, probe.batch)).batch
    return largest_fitting(probes)


def largest_fitting(probes: Sequence[Probe]) -> Optional[int]:
    return max((probe.batch for probe in probes if probe.fits), default=None)


def least_failing(probes: Sequence[Probe]) -> Optional[int]:
    return min((probe.batch for probe in probes if not probe.fits), default=None)
