"""Ten realistic hours, predicted from a few trials of 200 steps: checkpoints, evaluation, drift,
restarts.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from statistics import median

from tests.simulations.future_runs import Coverage
from tests.simulations.logged_runs import (
    DOWNLOADING_SECONDS,
    FIRST_STEP_SECONDS,
    IMPORT_SECONDS,
    UPLOADING_SECONDS,
    result_of,
    session_of,
)
from tests.simulations.processes import Event, Simulated, autoregression
from tests.unit.run_samples import PRICE, known, make_cell, make_run, make_suite
from traindyno.core.costs.hazard import PRIORS
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.run.workload import FullRun
from traindyno.core.suite.suite import Suite
from traindyno.core.verdict.build_row import build_row
from traindyno.core.verdict.cell_runs import group_runs
from traindyno.core.verdict.figure_table import build_figures
from traindyno.figures.model import model_each_alone

STEPS = 36_000
TRIAL_STEPS = 200
SAMPLES = 8
CHECKPOINT_MINUTES = 30
CHECKPOINT_SECONDS = 60.0
EVALUATE_STEPS = 1000
EVALUATION_SECONDS = 20.0
STARTING_SECONDS = 300.0
DRIFT = 0.015
DRIFT_STEPS = 7200
RECOMPILATION_SECONDS = 40.0
HOSTS_DEVIATION = 0.01
LOGGED_TRIALS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class StepNoise:
    """An autoregression of first order, of the logarithms of the step times."""

    correlation: float = 0.5
    deviation: float = 0.03


@dataclass(frozen=True, slots=True, kw_only=True)
class TenHours(Coverage):
    """``half_width`` is the median half width of the intervals, as a share of the figure."""

    half_width: float


def predict_ten_hours(
    sources: Iterator[random.Random], *, trials: int, purchase: str, noise: StepNoise = StepNoise()
) -> TenHours:
    """The error is that of the cell's figure.

    Restarts of the later run are drawn from the stated hazard.
    """
    logged = _logged_trials(noise)
    errors = []
    widths = []
    covered = 0
    not_given = 0
    for source in sources:
        drawn = [source.choice(logged) for _ in range(trials)]
        results = [
            _on_a_host(result, source, trial, purchase)
            for trial, result in enumerate(drawn, start=1)
        ]
        (runs,) = group_runs(make_suite(), [make_cell()], results)
        row = build_row(runs, model_each_alone(build_figures([runs])))
        later = full_run_seconds(source, PRIORS[purchase].per_instance_hour)
        if row.seconds is None or row.prediction is None or row.prediction.seconds is None:
            not_given += 1
            continue
        interval = row.prediction.seconds
        errors.append(abs(row.seconds.mean / later - 1))
        widths.append((interval.high - interval.low) / 2 / row.seconds.mean)
        covered += interval.low <= later <= interval.high
    given = len(errors)
    return TenHours(
        median_error=median(errors),
        half_width=median(widths),
        covered=covered / given,
        not_given=not_given / (given + not_given),
    )


def full_run_seconds(source: random.Random, interruptions_per_hour: float) -> float:
    """Wall clock from the job's creation; noise averages out over 36,000 steps, the host's speed
    does not.
    """
    host = source.lognormvariate(0, HOSTS_DEVIATION)
    drift = DRIFT * (STEPS - DRIFT_STEPS / 2) / STEPS
    stepping = host * STEPS * (1 + drift) + STEPS // EVALUATE_STEPS * EVALUATION_SECONDS
    checkpoints = int(stepping / (60 * CHECKPOINT_MINUTES))
    training = stepping + checkpoints * CHECKPOINT_SECONDS + RECOMPILATION_SECONDS
    start = STARTING_SECONDS + DOWNLOADING_SECONDS + IMPORT_SECONDS + FIRST_STEP_SECONDS
    at = source.expovariate(interruptions_per_hour / 3600)
    total = start + training + UPLOADING_SECONDS
    while at < training:
        lost = source.uniform(0, 60 * CHECKPOINT_MINUTES)
        total += start + lost
        at += source.expovariate(interruptions_per_hour / 3600) - lost
    return total


@cache
def _logged_trials(noise: StepNoise) -> tuple[RunResult, ...]:
    """On a host of average speed: their logs are read once, and the host of each trial is drawn
    when they are used.
    """
    return tuple(
        trial_result(random.Random(f"ten hours {number}"), noise) for number in range(LOGGED_TRIALS)
    )


def _on_a_host(result: RunResult, source: random.Random, trial: int, purchase: str) -> RunResult:
    host = source.lognormvariate(0, HOSTS_DEVIATION)
    assert result.measured is not None
    rate = known(result.measured.throughput)
    slower = replace(
        rate,
        samples_per_second=rate.samples_per_second / host,
        steps_per_second=rate.steps_per_second / host,
    )
    return replace(
        result,
        run=make_run(make_cell(), trial),
        measured=replace(result.measured, throughput=slower),
        price=replace(PRICE, purchase=purchase),
    )


def trial_result(source: random.Random, noise: StepNoise = StepNoise()) -> RunResult:
    """200 steps, with one evaluation and one checkpoint in their midst, as the training program
    does them.
    """
    drawn = autoregression(
        source, TRIAL_STEPS, correlation=noise.correlation, deviation=noise.deviation
    )
    seconds = [
        step_seconds * (1 + DRIFT * step / DRIFT_STEPS) for step, step_seconds in enumerate(drawn)
    ]
    events = [
        Event(step=TRIAL_STEPS // 2, seconds=taken * source.uniform(0.95, 1.05), name=name)
        for name, taken in (("evaluate", EVALUATION_SECONDS), ("checkpoint", CHECKPOINT_SECONDS))
    ]
    session = session_of(Simulated(step_seconds=seconds, long_run_seconds=1.0, events=events))
    return result_of(make_run(make_cell()), _suite(), [session], starting_seconds=STARTING_SECONDS)


def _suite() -> Suite:
    suite = make_suite(examples=STEPS * SAMPLES)
    schedule = FullRun(
        checkpoint_every_minutes=CHECKPOINT_MINUTES, evaluate_every_steps=EVALUATE_STEPS
    )
    return replace(suite, workload=replace(suite.workload, full_run=schedule))
