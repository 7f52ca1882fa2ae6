"""The estimate of memory beside what a GPU had, for models of 124 million to 8 billion parameters.

``python -m bench.gpu_memory NAME`` trains one of them in a process of its own: a JSON line has the
bytes.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench.figures import Figure
from bench.gpu_cases import MEMORY_CASES, memory_case
from bench.race_case import RaceCase

GIB = 2**30


def memory_figures() -> Iterator[Figure]:
    for name in MEMORY_CASES:
        ran = subprocess.run(
            [sys.executable, "-m", "bench.gpu_memory", name],
            stdout=subprocess.PIPE,
            text=True,
            check=False,
        )
        bytes_by_name = json.loads(ran.stdout.splitlines()[-1]) if ran.returncode == 0 else {}
        for what in ("estimate", "peak allocated", "peak reserved"):
            count = bytes_by_name.get(what)
            value = None if count is None else count / GIB
            yield Figure(name=f"memory of {name}: {what}", value=value, unit="GiB")


def measure_memory(case: RaceCase) -> dict[str, int]:
    """The estimated bytes of the case's steps, with the bytes that the device had."""
    import torch  # noqa: PLC0415  (the figures are made without it)

    from bench.our_trainer import load_sequences, read_run, train_with_ours  # noqa: PLC0415
    from training.memory.estimate import estimate_memory  # noqa: PLC0415

    run = read_run(case, {})
    estimate = estimate_memory(run.workload, run.settings)
    with tempfile.TemporaryDirectory() as scratch:
        train_with_ours(run, load_sequences(run, None, Path(scratch)))
    return {
        "estimate": estimate.peak_bytes,
        "peak allocated": torch.cuda.max_memory_allocated(),
        "peak reserved": torch.cuda.max_memory_reserved(),
    }


if __name__ == "__main__":
    print(json.dumps(measure_memory(memory_case(sys.argv[1]))))  # noqa: T201
