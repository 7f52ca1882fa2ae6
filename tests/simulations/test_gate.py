"""The gate on a change, on executions of known truth: a change without effect seldom fails it, a
real one does, and equal executions pass a wide one.

Each execution has two jobs on hosts of their own, with three trials each.
"""

from collections import Counter
from collections.abc import Callable, Iterator
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
from traindyno.core.verdict.comparison import ExecutionRecord, compare_executions
from traindyno.core.verdict.gate import GateFinding, check_gate

CHANGES = 30
JOBS = 2
TRIALS_OF_JOB = 3
SCATTER = 0.01
SECONDS_OF_STEP = 0.5
MOST_FAILED = 0.05
LEAST_FOUND = 0.9
LEAST_PASSED = 0.8
# The first trial of a shape, whose log the others share but for the time of a step.
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


def execution(name: str, instance: str, factor: float, noise: Iterator[float]) -> ExecutionRecord:
    suite = make_suite(training={"instance": instance}, matrix={"strategy": ("ddp",)})
    (cell,) = suite.cells
    results = tuple(
        _result(cell, name, job, trial, factor * next(noise))
        for job in range(JOBS)
        for trial in range(TRIALS_OF_JOB)
    )
    return ExecutionRecord(execution_id=name, suite=suite, cells=suite.cells, results=results)


def _result(cell: Cell, execution_id: str, job: int, trial: int, slower: float) -> RunResult:
    number = TRIALS_OF_JOB * job + trial + 1
    result = completed_result(cell, number, step_seconds=SECONDS_OF_STEP * slower)
    environment = replace(known(result.environment), host_ids=(f"{execution_id} {job}",))
    changes: dict[str, Any] = {
        "run": replace(result.run, execution_id=execution_id),
        "attempts": (make_attempt(job_name=f"{execution_id}-{job}"),),
        "environment": environment,
    }
    return replace(result, **changes)


def findings(factor: float, tolerance: float, noise: Noise, instance: str) -> Counter[GateFinding]:
    counted = Counter[GateFinding]()
    for source in repetitions(CHANGES, f"gate {factor} {tolerance} {instance}"):
        runs = noise(source)
        before = execution("before", instance, 1.0, runs)
        after = execution("after", instance, factor, runs)
        counted[check_gate(compare_executions(before, after), tolerance).finding] += 1
    return counted


def assert_share(found: Counter[GateFinding], finding: GateFinding, least: float) -> None:
    assert found[finding] / found.total() >= least, found


def assert_seldom_failed(found: Counter[GateFinding]) -> None:
    failed = share_of(number < found[GateFinding.WORSE] for number in range(found.total()))
    assert failed.share <= MOST_FAILED + failed.error(MOST_FAILED), found


def test_a_change_of_ten_percent_is_found() -> None:
    found = findings(1.1, 0.03, normal_noise, "ml.p4d.24xlarge")
    assert_share(found, GateFinding.WORSE, LEAST_FOUND)


def test_equal_executions_pass_a_tolerance_of_ten_percent() -> None:
    found = findings(1.0, 0.1, normal_noise, "ml.p4d.24xlarge")
    assert_share(found, GateFinding.HOLDS, LEAST_PASSED)


@pytest.mark.parametrize("tolerance", [0.0, 0.03])
def test_equal_executions_seldom_fail(tolerance: float) -> None:
    assert_seldom_failed(findings(1.0, tolerance, normal_noise, "ml.p4d.24xlarge"))


@pytest.mark.parametrize("recording", ["quiet", "loaded"])
def test_equal_executions_seldom_fail_on_recorded_noise(recording: str) -> None:
    assert_seldom_failed(findings(1.0, 0.03, recorded_noise(recording), "local.cpu"))
