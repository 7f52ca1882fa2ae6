"""How busy this process and its host were, from Linux's counters; other systems have none."""

import os
import sys
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Optional

from traindyno.callbacks.clock import now
from traindyno.core.step_log.line import host_load_line

INTERVAL_SECONDS = 5.0
STAT = Path("/proc/stat")
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
# The fields of /proc/stat's first line after its name are: user nice system idle iowait irq softirq
# steal.
BUSY_FIELDS = (0, 1, 2, 5, 6)
STEAL_FIELD = 7
# These fields of /proc/<pid>/stat after the command in brackets are user and system time of the
# process.
PROCESS_TIME_FIELDS = (11, 12)


class Counters(NamedTuple):
    """Sums since the start of the process, or of the host for ``host_busy_seconds`` and
    ``steal_seconds``.
    """

    time: float
    cpu_seconds: float
    run_queue_seconds: float
    host_busy_seconds: float
    steal_seconds: float


class HostLoadMeter:
    """The host's load between one line and the next."""

    def __init__(self) -> None:
        self._before = read_counters()

    def due_line(self) -> Optional[Dict[str, Any]]:
        """A line if the last one is old enough."""
        if self._before is None or now() - self._before.time < INTERVAL_SECONDS:
            return None
        return self.line()

    def line(self) -> Optional[Dict[str, Any]]:
        """The load since the last line; None if the system has no such counters."""
        before = self._before
        after = read_counters()
        if before is None or after is None or after.time <= before.time:
            return None
        self._before = after
        sums = [name for name in Counters._fields if name != "time"]
        load = {name: max(0.0, getattr(after, name) - getattr(before, name)) for name in sums}
        return host_load_line(
            begin=before.time, end=after.time, host_cpu_count=os.cpu_count() or 1, **load
        )


def read_counters() -> Optional[Counters]:
    if not sys.platform.startswith("linux"):
        return None
    import resource  # noqa: PLC0415

    usage = resource.getrusage(resource.RUSAGE_SELF)
    try:
        host = [
            int(ticks) / TICKS_PER_SECOND
            for ticks in STAT.read_text().split("\n", 1)[0].split()[1:]
        ]
        return Counters(
            time=now(),
            cpu_seconds=usage.ru_utime + usage.ru_stime + _cpu_seconds_of_children(),
            # the time in which this process's threads were ready and had no core, in ns
            run_queue_seconds=sum(
                int(text.split()[1]) for text in _readable("/proc/self/task/*/schedstat")
            )
            / 1e9,
            host_busy_seconds=sum(host[field] for field in BUSY_FIELDS),
            steal_seconds=host[STEAL_FIELD],
        )
    except (OSError, ValueError, IndexError):
        return None


def _cpu_seconds_of_children() -> float:
    """The CPU time of loader workers belongs to this process."""
    children = " ".join(_readable("/proc/self/task/*/children")).split()
    stats = [text for child in children for text in _readable("/proc/{}/stat".format(child))]
    fields = [text.rpartition(")")[2].split() for text in stats]
    return (
        sum(
            int(process_fields[field]) for process_fields in fields for field in PROCESS_TIME_FIELDS
        )
        / TICKS_PER_SECOND
    )


def _readable(pattern: str) -> List[str]:
    """The texts of the files that can be read: a thread or a child may end while it is read."""
    texts = []
    for path in Path("/").glob(pattern.lstrip("/")):
        try:
            texts.append(path.read_text())
        except OSError:
            continue
    return texts
