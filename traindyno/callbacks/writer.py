"""Appends a step log's lines to this process's file: buffered, on disk at most a second later."""

import json
import threading
from pathlib import Path
from typing import Any, Dict, List

from traindyno.callbacks.clock import now

FLUSH_INTERVAL_SECONDS = 1.0


class StepLogFile:
    def __init__(self, path: Path) -> None:
        self.path = path
        self._lines: List[str] = []
        self._flushed = now()
        self._lock = threading.Lock()
        path.parent.mkdir(parents=True, exist_ok=True)

    def write(self, line: Dict[str, Any]) -> None:
        self._lines.append(json.dumps(line, separators=(",", ":")) + "\n")
        if now() - self._flushed >= FLUSH_INTERVAL_SECONDS:
            self.flush()

    def flush(self) -> None:
        self._flushed = now()
        if not self._lines:
            return
        with self._lock:
            lines, self._lines = self._lines, []
            # Opened for each write: a killed process leaves whole lines, and SageMaker's upload sees them at once.
            with self.path.open("a", encoding="utf-8") as log:
                log.write("".join(lines))


def log_path(directory: str, job_name: str, rank: int, start_seconds: float) -> Path:
    return Path(directory) / job_name / "rank-{:05d}.{}.jsonl".format(rank, int(start_seconds * 1000))
