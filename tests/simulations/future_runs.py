"""Trials of a cell and one later run of the whole workload, on hosts that are drawn anew for each
of them.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from math import sqrt
from statistics import median

from tests.simulations.logged_runs import run_result_of, true_seconds
from tests.simulations.processes import Process, Simulated
from tests.simulations.suites.logs import on_speed
from traindyno.core.costs.prediction import predict_run


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """The share of intervals that held the later run's time, and the median error of their centre,
    as a share.
    """

    covered: float
    median_error: float
    not_given: float


def measure_coverage(
    process: Process,
    sources: Iterator[random.Random],
    *,
    steps: int,
    trials: int,
    host_deviation: float,
) -> Coverage:
    """The coverage of predictions for hosts with this deviation of their speeds, as a share."""
    covered = 0
    errors = []
    not_given = 0
    for source in sources:
        results = [
            run_result_of(_on_a_host(process(source, steps), source, host_deviation), trial=trial)
            for trial in range(1, trials + 1)
        ]
        prediction = predict_run(results)
        later = true_seconds(_on_a_host(process(source, steps), source, host_deviation))
        if prediction is None or prediction.seconds is None:
            not_given += 1
            continue
        interval = prediction.seconds
        covered += interval.low <= later <= interval.high
        errors.append(abs(sqrt(interval.low * interval.high) / later - 1))
    given = len(errors)
    return Coverage(
        covered=covered / given,
        median_error=median(errors),
        not_given=not_given / (given + not_given),
    )


def _on_a_host(simulated: Simulated, source: random.Random, deviation: float) -> Simulated:
    return on_speed(simulated, source.lognormvariate(0, deviation))
