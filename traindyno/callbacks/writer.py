"""Appends a step log's lines to this process's file: buffered, on disk at most a second later."""

import json
import math
from pathlib import Path
from typing import Any, Dict, List

from traindyno.callbacks.clock import now

FLUSH_INTERVAL_SECONDS = 1.0


class StepLogWriter:
    def __init__(self, path: Path) -> None:
        self.path = path
        self._lines: List[str] = []
        self._flushed = now()
        path.parent.mkdir(parents=True, exist_ok=True)

    def write(self, line: Dict[str, Any]) -> None:
        self._lines.append(_as_json(line))
        if now() - self._flushed >= FLUSH_INTERVAL_SECONDS:
            self.flush()

    def flush(self) -> None:
        self._flushed = now()
        if not self._lines:
            return
        lines, self._lines = self._lines, []
        # Opened for each write: a killed process leaves whole lines, and SageMaker's upload sees them at once.
        with self.path.open("a", encoding="utf-8") as log:
            log.write("".join(lines))


def log_path(directory: str, job_name: str, rank: int, start_seconds: float) -> Path:
    return Path(directory) / job_name / "rank-{:05d}.{}.jsonl".format(rank, int(start_seconds * 1000))


def _as_json(line: Dict[str, Any]) -> str:
    loss = line.get("loss")
    if loss is not None and not math.isfinite(loss):
        line = dict(line, loss=None)  # JSON has no NaN; the error line says what happened
    return json.dumps(line, separators=(",", ":")) + "\n"
