"""Peak resident memory of a process that holds a part of a model, against one process that holds the whole."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from shutil import rmtree
from typing import Any

from bench.figures import Figure, Section, at_most
from bench.groups import TITLES, command
from localcloud.loopback import LOOPBACK, free_port

PROCESSES = 4
STRATEGIES: dict[str, dict[str, Any]] = {
    "fsdp": {"strategy": "fsdp"},
    "tensor": {"strategy": "tensor", "tensor_degree": PROCESSES},
    "pipeline": {"strategy": "pipeline", "pipeline_degree": PROCESSES, "micro_batches": PROCESSES},
}
SINGLE = {"strategy": "single"}
# 4.1 GB in single precision. Its largest tensor has 67 MB.
LARGE = {"model_type": "gpt2", "vocab_size": 8192, "n_embd": 2048, "n_layer": 20, "n_head": 16, "n_positions": 64}
SMALL = {**LARGE, "n_embd": 256, "n_layer": 4}
PART, ALLOWANCE = 1 / PROCESSES, 0.15
LIMIT_SECONDS = 900


def measure(*, is_quick: bool) -> Section:
    config = SMALL if is_quick else LARGE
    with tempfile.TemporaryDirectory() as folder:
        figures = _measure(config, Path(folder))
    return Section(
        title=TITLES["sharded_model"],
        command=command("sharded_model"),
        figures=tuple(figures),
        notes=(
            "Peak resident memory of the process that needs the most, Python and PyTorch included. The budget is a"
            " quarter of one process's peak and 15 % of the model.",
        ),
    )


def _measure(config: dict[str, Any], folder: Path) -> list[Figure]:
    saved = folder / "saved"
    whole = _peaks(1, config, SINGLE, saved, read=saved)
    model_bytes = sum(file.stat().st_size for file in saved.glob("*.safetensors"))
    figures = [Figure(name="the model", value=_gib(model_bytes), unit="GiB")]
    for name, peak in whole.items():
        figures.append(Figure(name=f"one process, {name}", value=_gib(peak), unit="GiB"))
    for strategy, values in STRATEGIES.items():
        for name, peak in _peaks(PROCESSES, config, values, folder / strategy, read=saved).items():
            budget = at_most(_gib(PART * whole[name] + ALLOWANCE * model_bytes))
            label = f"{strategy} over {PROCESSES}, {name}"
            figures.append(Figure(name=label, value=_gib(peak), unit="GiB", budget=budget))
        rmtree(folder / strategy)
    return figures


def _peaks(
    processes: int, config: dict[str, Any], values: dict[str, Any], written: Path, *, read: Path
) -> dict[str, int]:
    initialised, saved = _run(processes, config=config, values=values, model_path=None, save_folder=str(written))
    loaded, _ = _run(processes, config=config, values=values, model_path=str(read), save_folder=None)
    return {"initialise": initialised, "initialise and save": saved, "load": loaded}


def _run(processes: int, **job: Any) -> tuple[int, int]:
    """The highest peaks of a group, when it is built and at the end. Raises RuntimeError if a process fails."""
    port = free_port()
    group = [_start(rank, processes, port, job) for rank in range(processes)]
    try:
        answers = [process.communicate(timeout=LIMIT_SECONDS) for process in group]
    finally:
        for process in group:
            process.kill()
            process.wait()
    for process, (_, complaint) in zip(group, answers, strict=True):
        if process.returncode != 0:
            raise RuntimeError(f"a process of {job['values']} ended with {process.returncode}: {complaint[-2000:]}")
    built, ended = zip(*(json.loads(answer) for answer, _ in answers), strict=True)
    return max(built), max(ended)


def _start(rank: int, processes: int, port: int, job: dict[str, Any]) -> "subprocess.Popen[str]":
    place = {
        "RANK": str(rank),
        "WORLD_SIZE": str(processes),
        "LOCAL_RANK": str(rank),
        "LOCAL_WORLD_SIZE": str(processes),
        "MASTER_ADDR": LOOPBACK,
        "MASTER_PORT": str(port),
        "OMP_NUM_THREADS": "1",
        "CUDA_VISIBLE_DEVICES": "",
    }
    return subprocess.Popen(
        [sys.executable, "-m", "bench.sharded_model_rank", json.dumps(job)],
        env={**os.environ, **place},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _gib(size: float) -> float:
    return size / 2**30
