"""A race's case and result as JSON files, between the process that asks and the one that trains."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import cattrs

from bench.kept import Kept
from bench.race_case import RaceCase, RaceResult
from localcloud.home import REPO_ROOT

CONVERTER = cattrs.Converter(forbid_extra_keys=True)
OFFLINE = {
    "HF_HUB_OFFLINE": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "TRANSFORMERS_VERBOSITY": "error",
}


# Keeps freed memory: by default glibc returns it and asks the kernel again, at random up to 1,400
# page faults a step.
STEADY_HEAP = {"MALLOC_TRIM_THRESHOLD_": str(2**30), "MALLOC_MMAP_THRESHOLD_": str(2**30)}


def run_race(case: RaceCase, kept: Kept) -> RaceResult:
    return kept.case(case.name, RaceResult, lambda: _in_its_own_process(case))


def _in_its_own_process(case: RaceCase) -> RaceResult:
    """Thread settings and memory belong to one case."""
    threads = {} if case.threads is None else {"OMP_NUM_THREADS": str(case.threads)}
    with tempfile.TemporaryDirectory() as folder:
        case_path = Path(folder, "case.json")
        result_path = Path(folder, "result.json")
        case_path.write_text(json.dumps(CONVERTER.unstructure(case)))
        subprocess.run(
            [sys.executable, "-m", "bench.race", str(case_path), str(result_path)],
            cwd=REPO_ROOT,
            env={**os.environ, **OFFLINE, **STEADY_HEAP, **threads},
            stdout=subprocess.DEVNULL,
            check=True,
        )
        return CONVERTER.structure(json.loads(result_path.read_text()), RaceResult)


def read_case(path: Path) -> RaceCase:
    return CONVERTER.structure(json.loads(path.read_text()), RaceCase)


def write_result(result: RaceResult, path: Path) -> None:
    path.write_text(json.dumps(CONVERTER.unstructure(result)))
