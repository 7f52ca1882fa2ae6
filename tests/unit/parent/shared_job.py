"""A shared job on this machine, with real processes: what its parents read, and what they leave."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from traindyno.core.jobs.journal_format import (
    DOCUMENT_VARIABLE,
    ENDED,
    FOLDER_VARIABLE,
    JOURNAL,
    OPT_ML_VARIABLE,
    PROCESS,
)
from traindyno.parent.run_environment import CACHES

REPOSITORY = Path(__file__).resolve().parents[3]
ENTRY = "from traindyno.parent.program import main; main()"
PATIENCE_SECONDS = 60.0


def run_document(run_id: str, *arguments: str, **changed: Any) -> dict[str, Any]:
    document = {
        "run_id": run_id,
        "launcher": PROCESS,
        "processes_per_host": 1,
        "arguments": list(arguments),
        "hyperparameters": {},
        "environment": {},
        "channels": {},
    }
    return {**document, **changed}


def without_caches(environment: Mapping[str, str]) -> dict[str, str]:
    """PyTorch sets the place of its cache in a process that has compiled, as one of these tests may
    have.
    """
    return {name: value for name, value in environment.items() if name not in CACHES}


@dataclass(kw_only=True)
class SharedJob:
    root: Path
    runs: Sequence[Mapping[str, Any]]
    limits: Mapping[str, Any] = field(default_factory=dict)
    hosts: Sequence[str] = ("algo-1",)
    environment: Mapping[str, str] = field(default_factory=dict)
    programs: Sequence[Path] = (Path(__file__).with_name("train.py"),)
    entry: str = ENTRY

    def start(self, job_name: str = "job-a1", host: str = "algo-1") -> "subprocess.Popen[str]":
        """The parent of one host, as the training toolkit starts it."""
        code = self.root / "code"
        opt_ml = self.root / host
        code.mkdir(exist_ok=True)
        for program in self.programs:
            shutil.copy(program, code)
        (self.root / "document.json").write_text(json.dumps(self.document()))
        (opt_ml / "output").mkdir(parents=True, exist_ok=True)
        given = {
            "TRAINING_JOB_NAME": job_name,
            "SM_CURRENT_HOST": host,
            "SM_HOSTS": json.dumps(list(self.hosts)),
            "SM_OUTPUT_DIR": str(opt_ml / "output"),
            DOCUMENT_VARIABLE: str(self.root / "document.json"),
            FOLDER_VARIABLE: "/opt/ml/checkpoints",
            OPT_ML_VARIABLE: str(opt_ml),
            "PYTHONPATH": str(REPOSITORY),
        }
        return subprocess.Popen(
            [sys.executable, "-c", self.entry],
            cwd=code,
            env={**without_caches(os.environ), **given, **self.environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def carry(self, job_name: str = "job-a1") -> tuple[int, str]:
        """Exit code and output of one attempt on one host."""
        with self.start(job_name) as parent:
            output, _ = parent.communicate(timeout=PATIENCE_SECONDS)
        return parent.returncode, output

    def succeed(self, job_name: str = "job-a1") -> None:
        exit_code, output = self.carry(job_name)
        assert exit_code == 0, output

    def stop(self, when: Callable[[], object]) -> None:
        """An attempt that is told to stop then."""
        with self.start() as guard:
            wait_until(when)
            guard.send_signal(signal.SIGTERM)
            assert guard.wait(PATIENCE_SECONDS) == 128 + signal.SIGTERM

    def die(self, job_name: str, when: Callable[[], object]) -> None:
        """An attempt whose parent is killed then."""
        with self.start(job_name) as guard:
            wait_until(when)
            (parent,) = children_of(guard.pid)
            os.kill(parent, signal.SIGKILL)
            guard.wait(PATIENCE_SECONDS)

    def document(self) -> dict[str, Any]:
        document = {
            "version": 1,
            "job_id": "j1",
            "execution_id": "execution",
            "program": self.programs[0].name,
            "instance_type": "local.cpu",
            "max_job_seconds": 600,
            "max_run_seconds": None,
            "ending_seconds": 10,
            "grace_seconds": 0.3,
            "runs": list(self.runs),
        }
        return {**document, **self.limits}

    def folder(self, host: str = "algo-1") -> Path:
        return self.root / host / "checkpoints"

    def end(
        self, run_id: str, job_name: str = "job-a1", host: str = "algo-1"
    ) -> dict[str, Any] | None:
        path = self.folder(host) / run_id / ENDED / job_name / f"{host}.json"
        return json.loads(path.read_text()) if path.exists() else None

    def journal(self, job_name: str = "job-a1", host: str = "algo-1") -> list[dict[str, Any]]:
        path = self.folder(host) / JOURNAL / job_name / f"{host}.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def events(
        self, job_name: str = "job-a1", host: str = "algo-1"
    ) -> list[tuple[str, str | None, str | None]]:
        return [
            (line["event"], line.get("run_id"), line.get("reason"))
            for line in self.journal(job_name, host)
        ]

    def log(self, run_id: str, job_name: str = "job-a1", host: str = "algo-1") -> list[str]:
        path = self.folder(host) / run_id / "step_log" / job_name / "rank-0.jsonl"
        return path.read_text().splitlines() if path.exists() else []


def wait_until(holds: Callable[[], object]) -> None:
    end = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        assert time.monotonic() < end, "it did not come true"
        time.sleep(0.02)


def is_alive(process_id: int) -> bool:
    try:
        return Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def children_of(process_id: int) -> list[int]:
    return [
        int(number)
        for number in Path(f"/proc/{process_id}/task/{process_id}/children").read_text().split()
    ]
