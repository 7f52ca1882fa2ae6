"""What the parent on this host did, a line each."""

import json
import sys
import time
from pathlib import Path
from typing import Any, Dict, List

from traindyno.core.jobs.journal_format import (
    PARENT_ENDED,
    PARENT_STARTED,
    PEER_LOST,
    PROBE_BEGAN,
    PROBED,
    RUN_BEGAN,
    RUN_LEFT,
    WARM_UP_BEGAN,
    WARMED_UP,
)
from traindyno.core.search.largest_batch import Probe
from traindyno.parent.disk import Reserve, append
from traindyno.parent.host import Host


class Journal:
    """Its clock starts with it."""

    def __init__(self, host: Host, reserve: Reserve) -> None:
        self._path = host.journal
        self._reserve = reserve
        self._started = time.monotonic()

    def write(self, event: str, **fields: Any) -> None:
        elapsed = round((time.monotonic() - self._started) * 1e3)
        line = json.dumps({"event": event, "time": time.time(), "elapsed_milliseconds": elapsed, **fields})
        if not append(self._path, line + "\n", self._reserve):
            sys.stdout.write("the journal {} cannot be written; it would say: {}\n".format(self._path, line))


def count_deaths(host: Host, run_id: str) -> int:
    """In how many earlier jobs this host's parent, or another host, died while the run was in progress.

    A job that the service started again under its own name, after a spot interruption, has not died.
    """
    found = 0
    for folder in sorted(host.journal.parent.parent.glob("*")):
        if folder.name != host.job_name:
            found += any(_died_in(lines, run_id) for lines in map(_lines, sorted(folder.glob("*.jsonl"))))
    return found


def has_died_warming_up(host: Host) -> bool:
    """Whether an earlier job died in its throw-away run, which another one then leaves out."""
    for folder in sorted(host.journal.parent.parent.glob("*")):
        events = [line.get("event") for path in sorted(folder.glob("*.jsonl")) for line in _lines(path)]
        if folder.name != host.job_name and events.count(WARM_UP_BEGAN) > events.count(WARMED_UP):
            return True
    return False


def probes_before(host: Host, run_id: str) -> List[Probe]:
    """What the probes of earlier attempts found, and those of this job before a spot interruption."""
    found: Dict[int, Probe] = {}
    for path in sorted(host.journal.parent.parent.glob("*/{}.jsonl".format(host.name))):
        for line in _lines(path):
            batch, fits = line.get("batch"), line.get("fits")
            is_probe = (line.get("event"), line.get("run_id")) == (PROBED, run_id)
            if is_probe and isinstance(batch, int) and isinstance(fits, bool):
                found[batch] = Probe(batch, fits, line.get("peak_bytes"), line.get("samples_per_second"))
    return list(found.values())


def _died_in(lines: List[Dict[str, Any]], run_id: str) -> bool:
    is_in_progress = False
    for line in lines:
        event = line.get("event")
        if event in (PARENT_STARTED, PARENT_ENDED):
            is_in_progress = False
        elif line.get("run_id") == run_id:
            was_lost = event == RUN_LEFT and line.get("reason") == PEER_LOST and line.get("began") is True
            is_in_progress = event in (RUN_BEGAN, PROBE_BEGAN) or was_lost
    return is_in_progress


def _lines(path: Path) -> List[Dict[str, Any]]:
    """Without those that a full disk or a death has damaged."""
    try:
        texts = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
    return [line for line in map(_parsed, texts) if isinstance(line, dict)]


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None
