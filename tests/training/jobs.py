"""Starts a script the way a training container does, in a folder of its own, and reads what it
leaves.
"""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

REPO_ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = Path(__file__).parent / "scripts"
JOB_NAME = "job-of-a-test"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobEnd:
    exit_code: int
    output: str
    folder: Path

    @property
    def log_files(self) -> list[Path]:
        return sorted((self.folder / "step_log" / JOB_NAME).glob("rank-*.jsonl"))

    def lines(self, rank: int = 0) -> list[dict[str, Any]]:
        (path,) = (self.folder / "step_log" / JOB_NAME).glob(f"rank-{rank:05d}.*.jsonl")
        return [json.loads(line) for line in path.read_text().splitlines()]

    def of_kind(self, kind: str, rank: int = 0) -> list[dict[str, Any]]:
        return [line for line in self.lines(rank) if line["kind"] == kind]

    @property
    def failure(self) -> str:
        path = self.folder / "output" / "failure"
        return path.read_text() if path.exists() else ""


def job_environment(folder: Path) -> dict[str, str]:
    (folder / "output").mkdir(exist_ok=True)
    return {
        **{
            name: value
            for name, value in os.environ.items()
            if name not in ("RANK", "WORLD_SIZE", "LOCAL_RANK")
        },
        "PYTHONPATH": str(REPO_ROOT),
        "TRAINDYNO_STEP_LOG_DIRECTORY": str(folder / "step_log"),
        "TRAINING_JOB_NAME": JOB_NAME,
        "SM_OUTPUT_DIR": str(folder / "output"),
        "SM_MODEL_DIR": str(folder / "model"),
        "TMPDIR": str(folder),
        "OMP_NUM_THREADS": "1",
        "HF_HUB_OFFLINE": "1",
        "CUDA_VISIBLE_DEVICES": "",
    }


def run_job(
    folder: Path,
    script: Path,
    *arguments: str,
    processes: int = 1,
    environment: dict[str, str] | None = None,
    timeout_seconds: float = 240,
) -> JobEnd:
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
    command = [sys.executable, *(launcher if processes > 1 else []), str(script), *arguments]
    ended = subprocess.run(
        command,
        cwd=folder,
        env={**job_environment(folder), **(environment or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=timeout_seconds,
        check=False,
    )
    return JobEnd(exit_code=ended.returncode, output=ended.stdout, folder=folder)
