"""A limit of CPU time for one call."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class TooSlow(BaseException):
    """It is not an Exception, so that no ``except`` of the code under test takes it for its own."""


@contextmanager
def cpu_limit(seconds: float) -> Iterator[None]:
    """The limit counts this process's own time: a busy machine doesn't matter."""

    def stop(_signal: int, _frame: FrameType | None) -> None:
        raise TooSlow(f"no answer in {seconds} s of CPU time")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
