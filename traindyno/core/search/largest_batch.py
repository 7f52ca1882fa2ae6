"""Which batch is probed next, and which one is measured. Runs on Python 3.8 (frozen images), with the standard library
only: the parent process of a shared job searches by it.

A batch fits if a few steps of the run with it end well. The search doubles from the first batch until one does not fit,
or halves until one fits, and then bisects. It assumes that each batch below one that fits fits too.
"""

from collections.abc import Sequence
from typing import NamedTuple

#: Each costs the start of the run, and a few steps.
MOST_PROBES = 6
#: Steps of a probe. The rate is that of the steps after the first ones, which compile and allocate.
PROBE_STEPS, PROBE_WARM_UP_STEPS = 8, 3
#: For a script that logs no steps.
LONGEST_PROBE_SECONDS = 600.0
LARGEST, BEST = "largest", "best"


class Probe(NamedTuple):
    """``batch``: samples per device. ``fits``: its steps ended well; False is a measurement of too little memory.

    ``peak_bytes``: of the process that needed the most; ``samples_per_second``: of all processes. None if unknown.
    """

    batch: int
    fits: bool
    peak_bytes: int | None = None
    samples_per_second: float | None = None


def next_batch(probes: Sequence[Probe], first: int, step: int = 1) -> int | None:
    """None once the search has ended. ``first`` and each batch are multiples of ``step``.

    If the largest batch that fits is at least half of ``first`` and less than twice it, the one that is found is less
    than it by at most a sixteenth, or by ``step``.
    """
    if len(probes) >= MOST_PROBES:
        return None
    if not probes:
        return max(step, first - first % step)
    fitting, failing = largest_fitting(probes), least_failing(probes)
    if failing is None:
        return 2 * (fitting or first)
    middle = ((fitting or 0) + failing) // 2
    middle -= middle % step
    return middle if middle > (fitting or 0) else None


def chosen(probes: Sequence[Probe], choice: str) -> int | None:
    """The batch that is measured; None if none of the probes fits. With ``best``, the highest rate decides."""
    fitting = [probe for probe in probes if probe.fits]
    if choice == BEST and fitting:
        return max(fitting, key=lambda probe: (probe.samples_per_second or 0.0, probe.batch)).batch
    return largest_fitting(probes)


def largest_fitting(probes: Sequence[Probe]) -> int | None:
    return max((probe.batch for probe in probes if probe.fits), default=None)


def least_failing(probes: Sequence[Probe]) -> int | None:
    return min((probe.batch for probe in probes if not probe.fits), default=None)
