"""What the parent on this host did, a line each."""

import json
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional, Sequence
from typing import Counter as Counts

from traindyno.core.jobs.journal_format import (
    MOST_DEATHS,
    PARENT_ENDED,
    PARENT_STARTED,
    PEER_LOST,
    PROBE_BEGAN,
    PROBED,
    RUN_BEGAN,
    RUN_LEFT,
    STOPPED,
    WARM_UP_BEGAN,
    read_object,
)
from traindyno.core.search.largest_batch import Probe
from traindyno.parent.disk import append
from traindyno.parent.host import Host


class Journal:
    """Its clock starts with it."""

    def __init__(self, host: Host) -> None:
        self._path = host.journal
        self._started = time.monotonic()

    def write(self, event: str, **fields: Any) -> None:
        elapsed = round((time.monotonic() - self._started) * 1e3)
        line = json.dumps(
            {"event": event, "time": time.time(), "elapsed_milliseconds": elapsed, **fields}
        )
        if not append(self._path, line + "\n"):
            sys.stdout.write(
                "the journal {} cannot be written; it would say: {}\n".format(self._path, line)
            )


def count_deaths(host: Host, run_id: str, cut_off: Sequence[str]) -> int:
    """In how many earlier jobs this host's parent, or another host, died or got SIGTERM while the
    run was in progress.

    A job that the service started again under its own name, after a spot interruption, has not
    died, nor has one of ``cut_off``, which the service or the lab ended. In any other job, SIGTERM
    came from the run, as from a script that ends its launcher.
    """
    jobs = _earlier_jobs(host, cut_off)
    return sum(any(_died_in(lines, run_id) for lines in hosts) for hosts in jobs)


def has_died_warming_up(host: Host, cut_off: Sequence[str]) -> bool:
    """Whether an earlier job died, or got SIGTERM, in its throw-away run, which another one then
    leaves out.
    """
    jobs = _earlier_jobs(host, cut_off)
    return any(_died_warming_up(lines) for hosts in jobs for lines in hosts)


def _earlier_jobs(host: Host, cut_off: Sequence[str]) -> Iterator[List[List[Dict[str, Any]]]]:
    """The lines of each host, for each job that may have died."""
    for folder in sorted(host.journal.parent.parent.glob("*")):
        if folder.name not in (host.job_name, *cut_off):
            yield [_lines(path) for path in sorted(folder.glob("*.jsonl"))]


def probes_before(host: Host, run_id: str, cut_off: Sequence[str]) -> List[Probe]:
    """Results of the probes of earlier attempts, and of this job before a spot interruption.

    A batch with which as many jobs died as end a run does not fit: the host's own memory may have
    been too small.
    """
    probes: Dict[int, Probe] = {}
    deaths: Counts[int] = Counter()
    for path in sorted(host.journal.parent.parent.glob("*/{}.jsonl".format(host.name))):
        lines = _lines(path)
        probes.update(
            (probe.batch, probe) for line in lines if (probe := _probe_of(line, run_id)) is not None
        )
        died = (
            None if path.parent.name in (host.job_name, *cut_off) else _died_probing(lines, run_id)
        )
        if died is not None:
            deaths[died] += 1
    for batch in sorted(batch for batch, count in deaths.items() if count >= MOST_DEATHS):
        probes.setdefault(batch, Probe(batch, fits=False))
    return list(probes.values())


def _probe_of(line: Dict[str, Any], run_id: str) -> Optional[Probe]:
    batch = line.get("batch")
    fits = line.get("fits")
    is_probe = (line.get("event"), line.get("run_id")) == (PROBED, run_id)
    if not (is_probe and isinstance(batch, int) and isinstance(fits, bool)):
        return None
    return Probe(
        batch,
        fits,
        line.get("peak_bytes"),
        line.get("samples_per_second"),
        line.get("retries") or 0,
    )


def _died_probing(lines: List[Dict[str, Any]], run_id: str) -> Optional[int]:
    """The batch whose probe was in progress when the job ended."""
    begun = None
    for line in lines:
        event = line.get("event")
        if (
            event == PROBE_BEGAN
            and line.get("run_id") == run_id
            and isinstance(line.get("batch"), int)
        ):
            begun = line["batch"]
        elif event in (PARENT_STARTED, PARENT_ENDED) or (
            event == PROBED and line.get("run_id") == run_id
        ):
            begun = None
    return begun


def _died_in(lines: List[Dict[str, Any]], run_id: str) -> bool:
    is_in_progress = False
    for line in lines:
        event = line.get("event")
        if _ends_session(line):
            is_in_progress = False
        elif line.get("run_id") == run_id:
            was_cut_short = event == RUN_LEFT and line.get("reason") in (PEER_LOST, STOPPED)
            had_begun = line.get("began") is True
            is_in_progress = event == RUN_BEGAN or (was_cut_short and had_begun)
    return is_in_progress


def _died_warming_up(lines: List[Dict[str, Any]]) -> bool:
    is_warming_up = False
    for line in lines:
        if line.get("event") == WARM_UP_BEGAN:
            is_warming_up = True
        elif _ends_session(line) or line.get("event") in (RUN_BEGAN, PROBE_BEGAN):
            is_warming_up = False
    return is_warming_up


def _ends_session(line: Dict[str, Any]) -> bool:
    """Whether what was in progress before this line has nothing to do with the job's end."""
    if line.get("event") == PARENT_ENDED:
        return line.get("reason") != STOPPED
    return line.get("event") == PARENT_STARTED


def _lines(path: Path) -> List[Dict[str, Any]]:
    try:
        texts = path.read_bytes().splitlines()
    except OSError:
        return []
    return [line for line in map(read_object, texts) if line is not None]
