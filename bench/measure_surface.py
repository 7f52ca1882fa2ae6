"""``python -m bench.measure_surface NAME``: measures a response surface of tests/data/surfaces on this machine.

Each trial is a fork of one process that has imported the libraries, and runs the entry point of a training job. The
step log's clock counts CPU seconds of the run, which is one thread without loader workers: on a shared host, wall-clock
times would measure the other work. A trial that is in the file already is not measured again.
"""

import argparse
import json
import os
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from bench.sample_rows import write_rows
from tests.simulations.response_surface import FOLDER, render
from traindyno.core.measurement.measured_run import measure_run, read_environment
from traindyno.core.step_log.line import ROWS, TOKENS, WORK_UNIT
from traindyno.core.step_log.reader import read_step_log
from traindyno.core.step_log.step_table import tabulate_steps
from traindyno.core.suite.suite_file import parse_workload

TRIALS = 3
STEPS = 40
WARMUP_STEPS = 8
# What every cell has to do.
WORK = {TOKENS: 5_000_000, ROWS: 100_000}
LENGTH = 64
ENCODER = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 256}


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """``matrix``: setting → values, of which all combinations are measured."""

    task: str
    config: Mapping[str, Any]
    matrix: Mapping[str, Sequence[Any]]


SURFACES = {
    "measured-gpt2": Measured(
        task="causal-lm",
        config={"model_type": "gpt2", "n_layer": 2, "n_embd": 64, "n_head": 4, "n_positions": LENGTH},
        matrix={
            "batch_size_per_device": [2, 4, 8],
            "precision": ["fp32", "bf16"],
            "activation_checkpointing": [False, True],
            "padding": ["max-length", "longest"],
            "packing": [False],
        },
    ),
    "measured-bert": Measured(
        task="sequence-classification",
        config={"model_type": "bert", "max_position_embeddings": LENGTH, **ENCODER},
        matrix={
            "batch_size_per_device": [4, 8, 16, 32],
            "padding": ["max-length", "longest", "bucket"],
            "precision": ["fp32", "bf16"],
        },
    ),
    "measured-albert": Measured(
        task="masked-lm",
        config={"model_type": "albert", "embedding_size": 32, "max_position_embeddings": LENGTH, **ENCODER},
        matrix={
            "batch_size_per_device": [4, 8, 16],
            "gradient_accumulation_steps": [1, 2],
            "optimizer": ["adamw", "sgd"],
            "padding": ["longest", "bucket"],
            "packing": [False],
        },
    ),
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.measure_surface", description=__doc__)
    parser.add_argument("name", choices=SURFACES)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="start no trial after so many seconds")
    parser.add_argument(
        "--into", type=Path, default=FOLDER, help="the folder of the file, which a later call continues"
    )
    asked = parser.parse_args()
    os.environ.update({"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "CUDA_VISIBLE_DEVICES": ""})
    surface, path = SURFACES[asked.name], asked.into / f"{asked.name}.json"
    document = json.loads(path.read_text()) if path.exists() else _empty(asked.name, surface)
    if next(_missing(document), None) is None:
        return 0
    ends = time.monotonic() + asked.seconds
    with tempfile.TemporaryDirectory() as folder:
        _import_libraries()
        tokens = _tokenise(surface, Path(folder))
        for trial, cell in _missing(document):
            if time.monotonic() > ends:
                return 1
            cell["trials"].append(_measure(surface, cell["settings"], trial, tokens, Path(folder)))
            path.write_text(render(document), encoding="utf-8")
    return 0


def _tokenise(surface: Measured, scratch: Path) -> Path:
    """Once for all trials, as PrepareData does."""
    from training.data.prepare import tokenise  # noqa: PLC0415
    from training.process.job import JobPaths  # noqa: PLC0415

    folder = scratch / "tokens"
    job = JobPaths(data_root=write_rows(scratch), model_path=None, tokenizer_path=None, save_folder=scratch)
    workload = parse_workload(_run_document(surface, {}, 1)["workload"])
    tokenise(workload, job, folder, packing=False)
    return folder


def _empty(name: str, surface: Measured) -> dict[str, Any]:
    points = [dict(zip(surface.matrix, values, strict=True)) for values in product(*surface.matrix.values())]
    return {
        "name": name,
        "origin": "measured",
        "source": f"python -m bench.measure_surface {name}: CPU seconds of one thread on a shared host of 2 cores",
        "goal": "fastest",
        "search": "grid",
        "training": {"instance": "local.cpu", "strategy": "single"},
        "cells": [{"settings": point, "trials": []} for point in points],
    }


def _missing(document: Mapping[str, Any]) -> Iterator[tuple[int, dict[str, Any]]]:
    """The missing trials: one trial of all cells, then the next, in an order that changes each time."""
    for trial in range(1, TRIALS + 1):
        for cell in document["cells"][::trial] + [each for at, each in enumerate(document["cells"]) if at % trial]:
            if len(cell["trials"]) < trial:
                yield trial, cell


def _import_libraries() -> None:
    import torch  # noqa: PLC0415
    import transformers  # noqa: F401, PLC0415

    torch.set_num_threads(1)
    import training.main  # noqa: F401, PLC0415


def _measure(surface: Measured, settings: Mapping[str, Any], trial: int, tokens: Path, scratch: Path) -> dict[str, Any]:
    folder = Path(tempfile.mkdtemp(dir=scratch))
    began = time.monotonic()
    child = os.fork()
    if child == 0:
        _run(surface, settings, trial, tokens, folder)
    _, status, usage = os.wait4(child, 0)
    cpu_seconds = usage.ru_utime + usage.ru_stime
    wall_seconds = time.monotonic() - began
    if status:
        raise RuntimeError(f"{settings}: the run ended with {status}: {(folder / 'output.txt').read_text()[-2000:]}")
    seconds = _work_seconds(folder)
    sys.stderr.write(f"{settings} trial {trial}: {seconds:.1f} s, {cpu_seconds:.2f} s of CPU, {wall_seconds:.2f} s\n")
    return {
        "seconds": round(seconds, 3),
        "billable_seconds": round(cpu_seconds, 3),
        "wall_seconds": round(wall_seconds, 3),
    }


def _run(surface: Measured, settings: Mapping[str, Any], trial: int, tokens: Path, folder: Path) -> None:
    """Runs in the fork, and ends its process."""
    output = os.open(folder / "output.txt", os.O_CREAT | os.O_WRONLY)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.environ.update(
        {
            "TRAINDYNO_STEP_LOG_DIRECTORY": str(folder / "step_log"),
            "TRAINING_JOB_NAME": "surface",
            "SM_OUTPUT_DIR": str(folder),
            "SM_MODEL_DIR": str(folder / "model"),
            "SM_CHANNEL_TRAIN": str(tokens),
            "SM_HPS": json.dumps(_run_document(surface, settings, trial)),
        }
    )
    time.perf_counter = time.process_time
    from traindyno.callbacks import clock  # noqa: PLC0415

    clock.ORIGIN = time.time() - time.process_time()
    from training.entry.traindyno_train import main as train  # noqa: PLC0415

    try:
        train()
    finally:
        traceback.print_exc()
        os._exit(1)


def _run_document(surface: Measured, settings: Mapping[str, Any], trial: int) -> dict[str, Any]:
    return {
        "run_id": f"surface-t{trial}",
        "workload": {
            "task": surface.task,
            "examples": 100_000,
            "model": {"config": surface.config},
            "tokenizer": {"train_vocabulary_size": 1024},
            "dataset": {"path": "s3://bucket/data", "format": "json"},
            "sequence_length": LENGTH,
            "label_count": 2,
        },
        "settings": {
            "instance": "local.cpu",
            "strategy": "single",
            "learning_rate": {"base": 1e-4},
            "seed": trial,
            **settings,
        },
        "measurement": {"max_steps": STEPS},
    }


def _work_seconds(folder: Path) -> float:
    """Seconds of the surface's work at the rate that the lab measures."""
    files = {str(path): path.read_text().splitlines() for path in (folder / "step_log").rglob("rank-*.jsonl")}
    log = read_step_log(files)
    session = log.measured
    if session is None:
        raise RuntimeError(f"{folder}: the step log holds no session; problems: {log.problems}")
    measured = measure_run(log, session, tabulate_steps(session), warmup_steps=WARMUP_STEPS, peak_flops_per_device=None)
    if measured.throughput is None:
        raise RuntimeError(f"{folder}: the step log gives no rate; problems: {log.problems}")
    environment = read_environment(log)
    unit = environment.facts[WORK_UNIT] if environment else ROWS
    rate = measured.throughput.tokens_per_second if unit == TOKENS else measured.throughput.samples_per_second
    if not rate:
        raise RuntimeError(f"{folder}: the step log counts no {unit}; expected a rate above 0")
    return WORK[unit] / rate


if __name__ == "__main__":
    sys.exit(main())
