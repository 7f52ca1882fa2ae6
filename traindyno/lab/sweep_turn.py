"""One sweep at a time: a sweep goes on while it holds the lab's lease, and one that finds it held does nothing."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from traindyno.core.lab_names import LEASE_SECONDS
from traindyno.lab.stop_runs import RequestPace
from traindyno.store.sweep_lease import SweepLease

# What is left after this part covers one request with all its retries, and clocks that differ.
RENEWED_AFTER = 1 / 4


@contextmanager
def sweep_turn(
    lease: SweepLease, holder: str, *, pace: RequestPace, clock: Callable[[], float], seconds: float = LEASE_SECONDS
) -> Iterator[RequestPace | None]:
    """The sweep's pace, which ends if another sweep takes the lease; None while another one holds it."""
    taken_at = clock()
    if not lease.take(holder, now=taken_at, seconds=seconds):
        yield None
        return
    keeps = _keeper(lease, holder, clock=clock, taken_at=taken_at, seconds=seconds)
    try:
        yield replace(pace, may_go_on=lambda: pace.may_go_on() and keeps())
    finally:
        lease.release(holder)


def _keeper(
    lease: SweepLease, holder: str, *, clock: Callable[[], float], taken_at: float, seconds: float
) -> Callable[[], bool]:
    renewed_at = taken_at

    def keeps() -> bool:
        nonlocal renewed_at
        now = clock()
        if now - renewed_at < seconds * RENEWED_AFTER:
            return True
        renewed_at = now
        return lease.renew(holder, now=now, seconds=seconds)

    return keeps
