"""Points in time of one process: on the host's clock, or on the stream of a CUDA device without
waiting for it.
"""

import sys
import time
from typing import Any, List, Sequence

# The wall clock is read once: later changes to it don't move this process's times.
ORIGIN = time.time() - time.perf_counter()


def now() -> float:
    """Epoch seconds that never step backwards."""
    return ORIGIN + time.perf_counter()


class HostClock:
    """If ``is_immediate``, a mark is already a time, and a step can be written when it ends."""

    is_immediate = True

    def mark(self) -> Any:
        return now()

    def resolve(self, marks: Sequence[Any]) -> List[float]:
        return list(marks)


class CudaClock(HostClock):
    """Marks are CUDA events; resolving waits for the device once and places every event on the
    host's time line.
    """

    is_immediate = False

    def __init__(self) -> None:
        self._cuda = sys.modules["torch"].cuda
        self._latest = 0.0
        self._anchor()

    def _anchor(self) -> None:
        self._cuda.synchronize()
        self._anchor_event = self.mark()
        self._anchor_event.synchronize()
        self._anchor_seconds = now()

    def mark(self) -> Any:
        event = self._cuda.Event(enable_timing=True)
        event.record()
        return event

    def resolve(self, marks: Sequence[Any]) -> List[float]:
        self._cuda.synchronize()
        resolved = []
        for mark in marks:
            seconds = self._anchor_seconds + self._anchor_event.elapsed_time(mark) / 1e3
            # A new anchor may be microseconds before the last mark of the previous one.
            self._latest = max(self._latest, seconds)
            resolved.append(self._latest)
        self._anchor()
        return resolved


def cuda_in_use() -> Any:
    """Module ``torch.cuda`` once the script has a CUDA context; None before that or without one."""
    torch = sys.modules.get("torch")
    is_in_use = torch is not None and torch.cuda.is_available() and torch.cuda.is_initialized()
    return torch.cuda if torch is not None and is_in_use else None


def clock_for_this_process() -> HostClock:
    """The device's clock once the script uses one, else the host's."""
    return CudaClock() if cuda_in_use() else HostClock()
