"""The interval for one more run of a cell."""

from dataclasses import replace
from math import exp, log, sqrt
from random import Random

import pytest

from tests.sentences import Snapshot
from tests.unit.run_samples import (
    completed_result,
    failed_result,
    known,
    make_cell,
    make_suite,
    remeasured,
)
from traindyno.core.costs.hazard import Hazard, posterior
from traindyno.core.costs.prediction import predict_run
from traindyno.core.costs.projection import project_run
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.measurement.stalls import RecurringEvent
from traindyno.core.run.workload import FullRun
from traindyno.core.suite.goal import SpotTerms
from traindyno.core.verdict.build_row import build_row
from traindyno.core.verdict.cell_runs import CellRuns
from traindyno.core.verdict.figure_table import build_figures
from traindyno.figures.model import model_each_alone

SUITE = make_suite(examples=80_008)
TYPE = "ml.p4d.24xlarge"


def trial(number: int, step_seconds: float) -> RunResult:
    return completed_result(make_cell(), number, step_seconds=step_seconds, suite=SUITE)


def test_the_interval_is_for_one_more_run_by_hand() -> None:
    prediction = known(predict_run([trial(1, 1.0), trial(2, 1.02)]))
    assert prediction.seconds is not None
    # 10,170 and 10,370 s; s = log(10,370 / 10,170) / sqrt(2); t(0.95, 1) = 6.3138
    spread = log(10_370 / 10_170) / sqrt(2)
    reach = 6.31375 * spread * sqrt(1.5)
    center = sqrt(10_370 * 10_170)
    assert prediction.seconds.low == pytest.approx(center * exp(-reach), rel=1e-4)
    assert prediction.seconds.high == pytest.approx(center * exp(reach), rel=1e-3)
    assert (prediction.trials, prediction.confidence, prediction.reason) == (2, 0.9, None)


def test_trials_resembling_the_one_before_know_their_mean_less_well() -> None:
    results = [trial(1, 1.0), trial(2, 1.02)]
    plain, correlated = (predict_run(results, inflation=inflation) for inflation in (1.0, 4.0))
    reaches = [
        log(prediction.seconds.high / prediction.seconds.low)
        for prediction in (known(plain), known(correlated))
        if prediction.seconds
    ]
    assert reaches[1] / reaches[0] == pytest.approx(sqrt(3 / 1.5), rel=2e-3)


def test_the_cost_has_an_interval_of_its_own() -> None:
    prediction = known(predict_run([trial(1, 1.0), trial(2, 1.0)]))
    assert prediction.usd is not None
    # equal trials: 101.10 $ each
    assert prediction.usd.low == pytest.approx(101.1)
    assert prediction.usd.high == pytest.approx(101.1, rel=1e-3)


def without_time(result: RunResult) -> RunResult:
    """All of the work was done before the steady window, and the job's phases took 0 s."""
    attempt = replace(result.attempts[0], phase_seconds={"training": 0.0}, billable_seconds=0.0)
    return replace(result, examples=1, attempts=(attempt,))


@pytest.mark.parametrize(
    ("results", "reason"),
    [
        ([trial(1, 1.0)], "one trial shows no spread between runs"),
        (
            [without_time(trial(1, 1.0)), trial(2, 1.0)],
            "1 of 2 trials have no time to project: SageMaker reported 0 s",
        ),
        (
            [remeasured(trial(1, 1.0), is_reached=False), trial(2, 1.0)],
            "1 of 2 trials were not steady",
        ),
    ],
)
def test_a_missing_interval_has_its_reason(results: list[RunResult], reason: str) -> None:
    prediction = known(predict_run(results))
    assert (prediction.seconds, prediction.usd, prediction.reason) == (None, None, reason)
    assert predict_run([]) is None


def test_unsteady_trials_count_beside_three_steady_ones(snapshot: Snapshot) -> None:
    """The interval is around the mean of all trials, which the figure is, too."""
    unsteady = remeasured(trial(4, 1.03), is_reached=False, reason="step times drift")
    steady = [trial(1, 1.0), trial(2, 1.01), trial(3, 1.02)]
    prediction = known(predict_run([*steady, unsteady]))
    assert prediction.seconds is not None
    assert sqrt(prediction.seconds.low * prediction.seconds.high) == pytest.approx(
        exp(sum(log(seconds(result)) for result in (*steady, unsteady)) / 4), rel=1e-3
    )
    fewer_than_half = known(predict_run([*steady, *[unsteady] * 4]))
    assert fewer_than_half.seconds is None
    snapshot(fewer_than_half.reason)


def seconds(result: RunResult) -> float:
    projection = known(project_run(result))
    return projection.seconds


def expecting(rate: float) -> Hazard:
    terms = SpotTerms(discount=0.5, interruptions_per_hour=rate)
    return posterior((TYPE, "spot"), count=0, hours=0.0, given={TYPE: terms})


def test_interruptions_widen_the_interval_upwards() -> None:
    """0.2 an hour: in 63 % of runs of 10,110 s there are none."""
    trials = [replace(trial(number, 1.0), checkpoint_every_steps=1800) for number in (1, 2)]
    plain = predict_run(trials)
    spot = predict_run(trials, hazard=expecting(0.2))
    assert spot is not None
    assert spot.seconds is not None
    assert spot.seconds.low == pytest.approx(seconds(trials[0]))
    # one in ten runs has two or more by the posterior; one costs 15 minutes of work at most twice
    # that, and a start
    assert 1.1 < spot.seconds.high / known(known(plain).seconds).high < 1.6
    assert spot.reason is None
    assert spot.interruptions_per_hour == pytest.approx(0.2)


def test_own_failures_are_paid_again_whole() -> None:
    """One of two attempts fails: a run takes one attempt in half of the cases, four or fewer in 94
    %, five in 97 %.
    """
    trials = [trial(1, 1.0), trial(2, 1.0)]
    lost = [failed_result(make_cell(), number, Outcome.OUT_OF_MEMORY) for number in (3, 4)]
    prediction = known(predict_run(trials, others=lost))
    assert prediction.seconds is not None
    assert prediction.seconds.high / prediction.seconds.low == pytest.approx(5, rel=1e-3)


@pytest.mark.parametrize("seed", range(60))
def test_figure_and_interval_overlap(seed: int) -> None:
    """Over random trials, rates, schedules and failures: the figure of the cell is within its
    prediction interval.
    """
    source = Random(seed)
    full_run = source.choice((None, FullRun(checkpoint_every_minutes=source.uniform(5, 60))))
    trials = [
        _with_checkpoint(trial(number, source.lognormvariate(0, 0.02)), full_run)
        for number in range(1, source.randrange(3, 6))
    ]
    others = [
        failed_result(make_cell(), 9, Outcome.OUT_OF_MEMORY) for _ in range(source.randrange(3))
    ]
    runs = CellRuns(
        cell=make_cell(),
        measured=tuple(trials),
        others=tuple(others),
        hazard=expecting(10 ** source.uniform(-5, 0.3)),
    )
    row = build_row(runs, model_each_alone(build_figures([runs])))
    assert row.prediction is not None
    for figure, interval in ((row.seconds, row.prediction.seconds), (row.usd, row.prediction.usd)):
        assert figure is not None, row.prediction.reason
        assert interval is not None
        assert interval.low <= figure.mean <= interval.high


def _with_checkpoint(result: RunResult, full_run: FullRun | None) -> RunResult:
    event = RecurringEvent(name="checkpoint", count=2, steps_between=30.0, seconds=2.0)
    return replace(remeasured(result, recurring=(event,)), full_run=full_run)


def test_a_cost_unknown_to_one_trial_has_no_interval() -> None:
    unpriced = trial(2, 1.0)
    unpriced = replace(unpriced, price=replace(unpriced.price, usd_per_instance_hour=None))
    prediction = known(predict_run([trial(1, 1.0), unpriced]))
    assert prediction.usd is None
    assert prediction.seconds is not None
