"""Trains cases on several processes, many in one job, and compares each with one process."""

import os
import subprocess
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import torch

from tests.nightly import NIGHTLY
from tests.training.forked_jobs import run_forked
from tests.training.strategy_cases import Case
from tests.training.strategy_rows import ROWS, Row
from tests.training.strategy_trial import Trained, train
from tests.xla.xla_environment import make_environment
from training.process.process_group import Topology

REPOSITORY = Path(__file__).parents[2]
WORKER = Path(__file__).with_name("strategy_worker.py")
COMPILED = str(REPOSITORY / ".torchinductor")
# Process groups of a case live as long as the job, with their threads: later cases take longer and
# longer.
MOST_CASES = 25
LIMIT_SECONDS = 3600 if NIGHTLY else 480
XLA_ENVIRONMENT = {
    "PJRT_DEVICE": "CPU",
    # Compiling is what takes the time, and the speed of what is compiled is not measured here.
    "XLA_FLAGS": "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true",
}
_references: dict[str, Trained] = {}


@cache
def results_of(environment: str, processes: int) -> dict[str, Trained | str]:
    """The results of ``train_cases`` for the rows of an environment, by row and model."""
    cases = {
        f"{row.label} {model}": row.case(model)
        for row in ROWS
        if (row.environment, row.processes) == (environment, processes)
        for model in row.trained
    }
    return train_cases(cases, environment, processes)


def train_cases(
    cases: Mapping[str, Case], environment: str, processes: int
) -> dict[str, Trained | str]:
    """What rank 0 ended with, by the case's name, or why it was refused."""
    trained: dict[str, Trained | str] = {}
    names = [*cases]
    for first in range(0, len(names), MOST_CASES):
        trained |= _train(
            {name: cases[name] for name in names[first : first + MOST_CASES]},
            environment,
            processes,
        )
    return trained


def _train(cases: Mapping[str, Case], environment: str, processes: int) -> dict[str, Trained | str]:
    with tempfile.TemporaryDirectory() as scratch:
        cases_path = Path(scratch) / "cases.pt"
        results_path = Path(scratch) / "results.pt"
        torch.save(cases, cases_path)
        if environment == "xla":
            _train_in_xla(cases_path, results_path, processes)
        else:
            _train_forked(Path(scratch), cases_path, results_path, processes)
        results: dict[str, Trained | str] = torch.load(results_path, weights_only=False)
        return results


def _train_forked(scratch: Path, cases: Path, results: Path, processes: int) -> None:
    arguments = (str(cases), str(results))
    environment = {"TORCHINDUCTOR_CACHE_DIR": COMPILED}
    end = run_forked(
        scratch,
        WORKER,
        *arguments,
        processes=processes,
        environment=environment,
        timeout_seconds=LIMIT_SECONDS,
    )
    assert end.exit_code == 0, end.output[-6000:]


def _train_in_xla(cases: Path, results: Path, processes: int) -> None:
    """Start torchrun of the environment that has XLA."""
    python = make_environment(REPOSITORY / ".envs" / "xla")
    ended = subprocess.run(
        [
            str(python),
            "-m",
            "torch.distributed.run",
            "--standalone",
            "--nproc-per-node",
            str(processes),
            "-m",
            "tests.training.strategy_worker",
            str(cases),
            str(results),
        ],
        cwd=REPOSITORY,
        env={**os.environ, "OMP_NUM_THREADS": "1", **XLA_ENVIRONMENT},
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr[-6000:]


def reference_of(row: Row, model: str) -> Trained:
    """One process without wrappers, compiler or options that only save memory; trained once for all
    rows it serves.
    """
    case = row.reference(model)
    key = repr(case)
    if key not in _references:
        _references[key] = train(case, Topology())
    return _references[key]


def differences(trained: Trained, reference: Trained) -> tuple[float, float]:
    """The largest of a loss, and of a parameter of the saved model."""
    assert trained.state.keys() == reference.state.keys()
    losses = max(
        abs(mine - theirs) for mine, theirs in zip(trained.losses, reference.losses, strict=True)
    )
    parameters = max(
        float((trained.state[name] - reference.state[name]).abs().max()) for name in reference.state
    )
    return losses, parameters
