"""The gate on a change, on executions of known truth: a change without effect seldom fails it, a
real one does, and equal executions pass a wide one.

Each execution has two jobs on hosts of their own.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from math import exp
from random import Random
from statistics import fmean
from typing import Any

import pytest

from tests.simulations.decisions import share_of
from tests.simulations.recorded_noise import FOLDER, read_recording
from tests.simulations.repetitions import repetitions
from tests.unit.run_samples import completed_result, known, make_attempt, make_suite
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.suite.cells import Cell
from traindyno.core.suite.suite import Suite
from traindyno.core.verdict.comparison import ExecutionRecord, compare_executions
from traindyno.core.verdict.gate import GateFinding, check_gate

CHANGES = 30
# Trials of each of its jobs
SHAPES = ((3, 3), (2, 1))
SCATTER = 0.01
SECONDS_OF_STEP = 0.5
MOST_FAILED = 0.05
LEAST_FOUND = 0.9
LEAST_PASSED = 0.8
INSTANCE = "ml.p4d.24xlarge"
Shape = Sequence[int]
Noise = Callable[[Random], Iterator[float]]


def normal_noise(source: Random) -> Iterator[float]:
    while True:
        yield exp(source.gauss(0, SCATTER))


def recorded_noise(name: str) -> Noise:
    """The mean steps of successive runs of a recording, from one that is drawn."""
    recording = read_recording(FOLDER / f"{name}.json")

    def noise(source: Random) -> Iterator[float]:
        for run in recording.from_one_on(source):
            yield fmean(run)

    return noise


def execution(
    name: str, suite: Suite, shape: Shape, factor: float, noise: Iterator[float]
) -> ExecutionRecord:
    (cell,) = suite.cells
    jobs = [job for job, trials in enumerate(shape) for _ in range(trials)]
    results = tuple(
        _result(cell, name, job, trial, factor * next(noise))
        for trial, job in enumerate(jobs, start=1)
    )
    return ExecutionRecord(execution_id=name, suite=suite, cells=suite.cells, results=results)


def _result(cell: Cell, execution_id: str, job: int, trial: int, slower: float) -> RunResult:
    result = completed_result(cell, trial, step_seconds=SECONDS_OF_STEP * slower)
    environment = replace(known(result.environment), host_ids=(f"{execution_id} {job}",))
    changes: dict[str, Any] = {
        "run": replace(result.run, execution_id=execution_id),
        "attempts": (make_attempt(job_name=f"{execution_id}-{job}"),),
        "environment": environment,
    }
    return replace(result, **changes)


def findings(
    factor: float,
    tolerance: float,
    noise: Noise = normal_noise,
    *,
    shape: Shape = SHAPES[0],
    instance: str = INSTANCE,
    changes: int = CHANGES,
) -> Counter[GateFinding]:
    """How often each finding came of so many changes by ``factor``."""
    suite = make_suite(training={"instance": instance}, matrix={"strategy": ("ddp",)})
    counted = Counter[GateFinding]()
    for source in repetitions(changes, f"gate {factor} {tolerance} {instance}"):
        runs = noise(source)
        before = execution("before", suite, shape, 1.0, runs)
        after = execution("after", suite, shape, factor, runs)
        counted[check_gate(compare_executions(before, after), tolerance).finding] += 1
    return counted


def assert_share(counts: Counter[GateFinding], finding: GateFinding, least: float) -> None:
    assert counts[finding] / counts.total() >= least, counts


def assert_seldom_failed(counts: Counter[GateFinding]) -> None:
    failed = share_of(number < counts[GateFinding.WORSE] for number in range(counts.total()))
    assert failed.share <= MOST_FAILED + failed.error(MOST_FAILED), counts


@pytest.mark.parametrize("shape", SHAPES)
def test_a_change_of_ten_percent_is_found(shape: Shape) -> None:
    assert_share(findings(1.1, 0.03, shape=shape), GateFinding.WORSE, LEAST_FOUND)


@pytest.mark.parametrize("shape", SHAPES)
def test_equal_executions_pass_a_tolerance_of_ten_percent(shape: Shape) -> None:
    assert_share(findings(1.0, 0.1, shape=shape), GateFinding.HOLDS, LEAST_PASSED)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("tolerance", [0.0, 0.03])
def test_equal_executions_seldom_fail(tolerance: float, shape: Shape) -> None:
    assert_seldom_failed(findings(1.0, tolerance, shape=shape))


@pytest.mark.parametrize("recording", ["quiet", "loaded"])
def test_equal_executions_seldom_fail_on_recorded_noise(recording: str) -> None:
    assert_seldom_failed(findings(1.0, 0.03, recorded_noise(recording), instance="local.cpu"))
