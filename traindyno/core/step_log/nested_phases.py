"""Phases without overlap: the time of an inner phase, such as a compilation in an evaluation, counts once."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from math import inf

from traindyno.core.step_log.content import Phase


def phases_apart(phases: Iterable[Phase]) -> tuple[Phase, ...]:
    """The phases in order of time, without those in the background.

    Each moment belongs to the phase that began last. A phase that contains others is returned in parts, so that no
    second counts twice.
    """
    own = [phase for phase in phases if not phase.is_in_background]
    open_phases = _OpenPhases()
    parts = [
        part
        for phase in sorted(own, key=lambda each: (each.begin, -each.end))
        for part in open_phases.parts_before(phase)
    ]
    return (*parts, *open_phases.parts_until(inf))


class _OpenPhases:
    """The phases that have begun and not ended, the innermost last; the time before ``_now`` is already divided."""

    def __init__(self) -> None:
        self._open: list[Phase] = []
        self._now = -inf

    def parts_before(self, phase: Phase) -> Iterator[Phase]:
        yield from self.parts_until(phase.begin)
        self._open.append(phase)
        self._now = max(self._now, phase.begin)

    def parts_until(self, time: float) -> Iterator[Phase]:
        while self._open:
            phase = self._open[-1]
            begin, end = max(self._now, phase.begin), min(phase.end, time)
            if end > begin or phase.begin == phase.end:
                yield replace(phase, begin=begin, end=max(begin, end))
                self._now = max(begin, end)
            if phase.end > time:
                return
            self._open.pop()
