"""The programs outside the job that used most of this host's CPU time, by name, from Linux's /proc.

Linux lists the processes that this user may see; a container sees its own alone. A name is that of the program (the
kernel's ``comm``): arguments, which may hold secrets, are not read.
"""

import os
from collections import defaultdict
from pathlib import Path
from typing import DefaultDict, Dict, Mapping, NamedTuple, Optional, Tuple

from traindyno.callbacks.process import JOB_VARIABLE, environment_of
from traindyno.core.step_log.line import LOCAL_CLOUD

MOST_PROGRAMS = 3
LEAST_SHARE = 0.01  # of the host's CPU time; five times as much makes a run contended
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
# The fields of /proc/<pid>/stat after the command in brackets. Times are in ticks, the last two of ended children.
PARENT, FLAGS, TIMES, START = 1, 6, slice(11, 15), 19
KERNEL_THREAD = 0x00200000  # of the flags: the kernel works for other programs, and nobody can close it
# The two services of a local cloud have it in their environment, and are called as a person knows them.
LOCAL_SERVICE = b"TRAINDYNO_LOCAL_PART="


class Seen(NamedTuple):
    """``seconds``: CPU time of the process and of its children that have ended."""

    parent: int
    name: str
    seconds: float


# By number and start: a number is used again.
Processes = Dict[Tuple[int, int], Seen]


def list_processes(folder: str = "/proc") -> Processes:
    """Empty without /proc."""
    found = {}
    for stat in Path(folder).glob("[0-9]*/stat"):
        text = _read(stat)
        fields = text.rpartition(")")[2].split()
        if len(fields) > START and not int(fields[FLAGS]) & KERNEL_THREAD:
            name = text.rpartition(")")[0].partition("(")[2]
            seconds = sum(map(int, fields[TIMES])) / TICKS_PER_SECOND
            found[int(stat.parent.name), int(fields[START])] = Seen(int(fields[PARENT]), name, seconds)
    return found


def busiest_programs(
    before: Processes, seconds: float, environment: Mapping[str, str] = os.environ
) -> Optional[Dict[str, float]]:
    """Name → CPU seconds since ``before``, which was ``seconds`` ago. None if nothing is known of other programs."""
    job = environment.get(JOB_VARIABLE)
    if not job or not before:
        return None
    own = "{}={}".format(JOB_VARIABLE, job).encode()
    spent: DefaultDict[str, float] = defaultdict(float)
    for (number, name), used in _used(before, list_processes()).items():
        words = environment_of(number) if used > 0 else [own]
        if own not in words:
            spent[LOCAL_CLOUD if any(word.startswith(LOCAL_SERVICE) for word in words) else name] += used
    busiest = sorted(spent.items(), key=lambda found: found[1], reverse=True)
    least = LEAST_SHARE * seconds * (os.cpu_count() or 1)
    return {name: round(used, 2) for name, used in busiest[:MOST_PROGRAMS] if used >= least}


def _used(before: Processes, after: Processes) -> Dict[Tuple[int, str], float]:
    """CPU seconds by number and name. A child that has ended gave its time, also that from before, to its parent."""
    inherited: DefaultDict[int, float] = defaultdict(float)
    for key in before.keys() - after.keys():
        inherited[before[key].parent] += before[key].seconds
    return {
        (number, seen.name): seen.seconds
        - (before[number, start].seconds + inherited[number] if (number, start) in before else 0.0)
        for (number, start), seen in after.items()
    }


def _read(path: Path) -> str:
    """Empty if the process has ended."""
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
