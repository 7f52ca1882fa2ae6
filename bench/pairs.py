"""Pairs in turn: the quickstart's cells of one batch, in processes of their own and in one shared
job.

``TRAINDYNO_PAIRS`` says how many; ``--resume`` goes on with the pairs of a measurement that was cut
off.
"""

import json
import os
import tempfile
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import exp, log, sqrt
from pathlib import Path
from statistics import fmean, median, stdev
from types import MappingProxyType
from typing import Any

import yaml

from bench.figures import Figure, Section, at_least, at_most
from bench.groups import TITLES, command
from bench.kept import Kept
from bench.tell import tell
from localcloud.home import REPO_ROOT
from tests.training.jobs import JobEnd, run_job
from tests.unit.parent.shared_job import SharedJob, run_document
from traindyno.core.errors import TraindynoError
from traindyno.core.measurement.measured_run import measure_contention
from traindyno.core.measurement.throughput import measure_table, measure_throughput
from traindyno.core.run.record import RunMeasurement, RunRecord, record_document
from traindyno.core.step_log.line import LoggedStep
from traindyno.core.step_log.reader import read_step_log
from traindyno.core.step_log.step_table import tabulate_steps
from traindyno.core.suite.suite_file import structure_suite
from traindyno.figures.distributions import t_half_width
from traindyno.figures.in_job.outpaced import WARM_UP_STEPS

SUITE = REPO_ROOT / "suites" / "quickstart.yaml"
BATCH = 8
MAX_STEPS = 100
ENTRY = REPO_ROOT / "training" / "entry"
TRAINING = ENTRY / "traindyno_train.py"
RANKS = ENTRY / "traindyno_ranks.py"
COUNT_VARIABLE = "TRAINDYNO_PAIRS"
PAIRS = 100
QUICK_PAIRS = 2
QUICK_STEPS = 12
MOST_REPEATS = 3
LEVEL = 0.90
TOLERANCE = 0.02
PATIENCE_SECONDS = 600.0
ON_THE_CPU = MappingProxyType({"CUDA_VISIBLE_DEVICES": "", "HF_HUB_OFFLINE": "1"})


class RunFailed(TraindynoError):
    """A run under measurement failed; carries its output."""


class RunContended(TraindynoError):
    """Other work on the host slowed down a run under measurement."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """The cells in processes of their own and in a shared job. Each figure is by cell."""

    #: Samples per second in a process of its own.
    separate: dict[str, float]
    #: Samples per second in the shared job.
    shared: dict[str, float]
    #: From the last step of the cell before in the shared job to the first counted step.
    change_seconds: dict[str, float]
    #: From the start of its own process to its first counted step.
    start_seconds: dict[str, float]
    #: How often the pair was measured again, because other work slowed it down.
    repeats: int = 0

    @property
    def log_ratio(self) -> float:
        """Logarithm of shared ÷ separate, the mean over the cells."""
        return fmean(log(self.shared[cell] / self.separate[cell]) for cell in self.separate)


def measure(*, is_quick: bool, kept: Kept) -> Section:
    documents = cell_documents(QUICK_STEPS if is_quick else None)
    count = QUICK_PAIRS if is_quick else int(os.environ.get(COUNT_VARIABLE, PAIRS))
    pairs = [
        kept.case(f"pair {number}", Pair, lambda number=number: measure_pair(documents, number))  # type: ignore[misc]
        for number in range(1, count + 1)
    ]
    low, ratio, high = interval([pair.log_ratio for pair in pairs])
    is_enough = is_quick or count >= PAIRS
    return Section(
        title=TITLES["pairs"],
        command=command("pairs"),
        figures=(
            Figure(
                name="pairs",
                value=float(count),
                unit="",
                budget=None if is_quick else at_least(PAIRS),
            ),
            Figure(
                name="measured again, because other work slowed down a run",
                value=float(sum(pair.repeats for pair in pairs)),
                unit="",
            ),
            Figure(name="rate in a shared job ÷ rate in a job of its own", value=ratio, unit="×"),
            Figure(
                name="from a cell's last step to the next cell's first counted step, in a shared "
                "job",
                value=median(seconds for pair in pairs for seconds in pair.change_seconds.values()),
                unit="s",
            ),
            Figure(
                name=f"lower end of its {LEVEL:.0%} interval",
                value=low,
                unit="×",
                budget=at_least(1 - TOLERANCE) if is_enough else None,
            ),
            Figure(
                name=f"upper end of its {LEVEL:.0%} interval",
                value=high,
                unit="×",
                budget=at_most(1 + TOLERANCE) if is_enough else None,
            ),
        ),
        notes=(
            f"The quickstart's {len(documents)} cells of batch {BATCH} on synthetic sequences, "
            f"{threads()} threads, without the state machine; rates as the lab measures them: a "
            "pair is measured again if other work slowed down a run. A pair is each cell once in "
            "a new interpreter, and once in one shared job, in turn; the geometric mean of the "
            "cells' ratios is one value.",
        ),
    )


def cell_documents(max_steps: int | None) -> dict[str, dict[str, Any]]:
    """The document that the runs of each cell get.

    They train on synthetic sequences, because tokenising would take most of a run's time.
    """
    document = yaml.safe_load(SUITE.read_text(encoding="utf-8"))
    workload = document["workload"]
    workload["dataset"] = {"format": "synthetic"}
    workload["model"]["config"]["vocab_size"] = workload.pop("tokenizer")["train_vocabulary_size"]
    suite = structure_suite(document)
    return {
        cell.cell_id: record_document(
            RunRecord(
                run_id=cell.cell_id,
                workload=suite.workload,
                settings=cell.settings,
                measurement=RunMeasurement(max_steps=max_steps or MAX_STEPS),
            )
        )
        for cell in suite.cells
        if cell.settings.batch_size == BATCH
    }


def measure_pair(documents: Mapping[str, Mapping[str, Any]], number: int, **where: Any) -> Pair:
    """Raises RunContended if each attempt was."""
    repeats = 0
    while True:
        try:
            return replace(attempt_pair(documents, number, **where), repeats=repeats)
        except RunContended as error:
            if repeats == MOST_REPEATS:
                raise
            repeats += 1
            tell(f"pair {number}: {error}; it is measured again")


def attempt_pair(
    documents: Mapping[str, Mapping[str, Any]],
    number: int,
    *,
    environment: Mapping[str, str] = ON_THE_CPU,
    failing: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
) -> Pair:
    """Measures a pair. Each kind goes first in every other pair, and the cells change places.

    Args:
        documents: What the runs of each cell get.
        number: The number of the pair.
        environment: The environment of the processes.
        failing: Cells that end the process, which the shared job has before its last cell.
    """
    turn = number % len(documents)
    *first, last = [*documents][turn:] + [*documents][:turn]
    cells = {**{cell: documents[cell] for cell in first}, **failing, last: documents[last]}
    with tempfile.TemporaryDirectory(prefix="traindyno-pairs-") as folder:
        shared = Path(folder) / "shared"
        shared.mkdir()
        ends: dict[str, JobEnd] = {}
        begun_at: dict[str, float] = {}
        for kind in ("separate", "shared")[:: (-1) ** number]:
            if kind == "shared":
                run_shared(shared, cells, environment, failing)
                continue
            for cell, document in documents.items():
                begun_at[cell] = time.time()
                ends[cell] = run_alone(Path(folder) / cell, document, environment)
        steps = [(cell, steps_of(logs_of(shared, cell))) for cell in cells if cell not in failing]
        return Pair(
            separate={cell: rate_of(end.log_files) for cell, end in ends.items()},
            shared={cell: rate_of(logs_of(shared, cell)) for cell in documents},
            change_seconds={
                cell: begun[WARM_UP_STEPS].begin - ended[-1].end
                for (_, ended), (cell, begun) in pairwise(steps)
            },
            start_seconds={
                cell: steps_of(end.log_files)[WARM_UP_STEPS].begin - begun_at[cell]
                for cell, end in ends.items()
            },
        )


def run_alone(folder: Path, document: Mapping[str, Any], environment: Mapping[str, str]) -> JobEnd:
    folder.mkdir()
    variables = {**environment, "OMP_NUM_THREADS": threads(), "SM_HPS": json.dumps(document)}
    ended = run_job(folder, TRAINING, environment=variables, timeout_seconds=PATIENCE_SECONDS)
    if ended.exit_code:
        raise RunFailed(ended.output)
    return ended


def run_shared(
    root: Path,
    documents: Mapping[str, Mapping[str, Any]],
    environment: Mapping[str, str],
    failing: Collection[str],
) -> None:
    runs = [run_document(cell, hyperparameters=document) for cell, document in documents.items()]
    variables = {**environment, "OMP_NUM_THREADS": threads()}
    limits = {"max_job_seconds": len(runs) * PATIENCE_SECONDS}
    job = SharedJob(
        root=root, runs=runs, programs=(TRAINING, RANKS), environment=variables, limits=limits
    )
    with job.start() as parent:
        output, _ = parent.communicate()
    wrong = [
        cell
        for cell in documents
        if ((job.end(cell) or {}).get("exit_code") == 0) is (cell in failing)
    ]
    if parent.returncode or wrong:
        raise RunFailed(f"{', '.join(wrong)}: {output}")


def logs_of(root: Path, cell: str) -> list[Path]:
    return sorted(
        (SharedJob(root=root, runs=()).folder() / cell / "step_log").rglob("rank-*.jsonl")
    )


def steps_of(files: Sequence[Path]) -> Sequence[LoggedStep]:
    """The steps of a run of one process."""
    session = read_step_log(
        {str(path): path.read_text(encoding="utf-8").splitlines() for path in files}
    ).measured
    if session is None:
        raise RunFailed(f"no step log in {', '.join(map(str, files)) or 'no file'}")
    return session.processes[0].steps


def threads() -> str:
    """The same for both kinds."""
    return os.environ.get("OMP_NUM_THREADS") or str(os.cpu_count() or 1)


def rate_of(files: Sequence[Path]) -> float:
    """Samples per second, as the lab measures them. Raises RunFailed and RunContended."""
    session = read_step_log(
        {str(path): path.read_text(encoding="utf-8").splitlines() for path in files}
    ).measured
    if session is None:
        raise RunFailed(f"no step log in {', '.join(map(str, files)) or 'no file'}")
    contention = measure_contention(session)
    if contention is not None and contention.is_contended:
        raise RunContended(f"other work took {contention.others_share:.0%} of the host's CPU time")
    table = tabulate_steps(session)
    step_time = measure_table(table, warmup_steps=None)
    throughput = measure_throughput(
        table, step_time, device_count=1, flops_per_token=None, peak_flops_per_device=None
    )
    if throughput is None:
        raise RunFailed("no steps were measured")
    return throughput.samples_per_second


def interval(log_ratios: Sequence[float]) -> tuple[float, float, float]:
    """The mean ratio between the ends of its interval."""
    mean = fmean(log_ratios)
    half = t_half_width(stdev(log_ratios) / sqrt(len(log_ratios)), len(log_ratios) - 1, LEVEL)
    return exp(mean - half), exp(mean), exp(mean + half)
