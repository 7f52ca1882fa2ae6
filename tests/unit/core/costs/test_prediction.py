from dataclasses import replace
from math import exp, log, sqrt
from statistics import variance

import pytest

from tests.unit.run_samples import completed_result, make_cell, make_suite
from traindyno.core.costs.prediction import predict_run
from traindyno.core.costs.projection import project_run
from traindyno.core.measurement.run_result import RunResult

SUITE = make_suite(examples=80_008)


def trial(number: int, step_seconds: float, *, interruptions: int = 0, lost_seconds: float = 0.0) -> RunResult:
    result = completed_result(make_cell(), number, step_seconds=step_seconds, suite=SUITE)
    assert result.measured is not None
    measured = replace(result.measured, interruptions=interruptions, lost_seconds=lost_seconds)
    return replace(result, measured=measured)


def test_the_interval_is_for_one_more_run_by_hand() -> None:
    found = predict_run([trial(1, 1.0), trial(2, 1.02)])
    assert found is not None
    assert found.seconds is not None
    # 10,170 and 10,370 s; s = log(10,370 / 10,170) / sqrt(2); t(0.95, 1) = 6.3138
    spread = log(10_370 / 10_170) / sqrt(2)
    reach = 6.31375 * spread * sqrt(1.5)
    center = sqrt(10_370 * 10_170)
    assert found.seconds.low == pytest.approx(center * exp(-reach), rel=1e-4)
    assert found.seconds.high == pytest.approx(center * exp(reach), rel=1e-4)
    assert (found.trials, found.confidence, found.reason) == (2, 0.9, None)


def test_the_cost_has_an_interval_of_its_own() -> None:
    found = predict_run([trial(1, 1.0), trial(2, 1.0)])
    assert found is not None
    assert found.usd is not None
    # equal trials: 101.10 $ each
    assert found.usd.low == pytest.approx(101.1)
    assert found.usd.high == pytest.approx(101.1)


def test_interruptions_are_added_at_their_rate() -> None:
    plain = [trial(1, 1.0), trial(2, 1.0)]
    projection = project_run(plain[0])
    assert projection is not None
    found = predict_run([trial(1, 1.0, interruptions=1, lost_seconds=50.0), trial(2, 1.0)])
    assert found is not None
    assert found.seconds is not None
    # one in two jobs of 170 s: 10.6 per hour, 29.7 in 10,110 s of training; each takes 50 s
    assert found.interruptions_per_hour == pytest.approx(3600 / 340)
    center = sqrt(found.seconds.low * found.seconds.high)
    assert center / projection.seconds == pytest.approx(1 + 10_110 / 340 * 50 / 10_170, rel=0.01)
    # the number in another run: mean m = 10,110 / 340, variance m + m², since the rate is known from one interruption
    expected = 10_110 / 340
    relative = sqrt(expected + expected**2) * 50 / (10_170 + expected * 50)
    reach = log(found.seconds.high / found.seconds.low) / 2
    assert reach == pytest.approx(6.31375 * relative, rel=0.01)


def test_one_trial_has_no_interval() -> None:
    found = predict_run([trial(1, 1.0)])
    assert found is not None
    assert (found.seconds, found.reason) == (None, "one trial shows no spread between runs")
    assert predict_run([]) is None


@pytest.mark.parametrize("stall_share", [None, 0.1])
def test_a_trial_without_time_has_no_interval(stall_share: float | None) -> None:
    """All of the work was done before the steady window, and the job's phases took 0 s."""
    plain = trial(1, 1.0)
    assert plain.measured is not None
    state = replace(plain.measured.steady_state, is_reached=stall_share is None, stall_share=stall_share)
    plain = replace(plain, measured=replace(plain.measured, steady_state=state))
    attempt = replace(plain.attempts[0], phase_seconds={"training": 0.0}, billable_seconds=0.0)
    found = predict_run([replace(plain, examples=1, attempts=(attempt,)), trial(2, 1.0)])
    assert found is not None
    assert (found.seconds, found.usd) == (None, None)
    assert found.reason == "1 of 2 trials have no time to project: SageMaker reported 0 s"


def test_trials_that_are_not_steady_have_no_interval() -> None:
    drifting = trial(1, 1.0)
    assert drifting.measured is not None
    state = replace(drifting.measured.steady_state, is_reached=False, reason="step times drift")
    unsteady = replace(drifting, measured=replace(drifting.measured, steady_state=state))
    found = predict_run([unsteady, trial(2, 1.0)])
    assert found is not None
    assert found.seconds is None
    assert found.reason == "1 of 2 trials were not steady"


def test_three_steady_trials_have_an_interval_beside_others_that_are_not() -> None:
    drifting = trial(4, 9.0)
    assert drifting.measured is not None
    state = replace(drifting.measured.steady_state, is_reached=False, reason="step times drift")
    unsteady = replace(drifting, measured=replace(drifting.measured, steady_state=state))
    steady = [trial(1, 1.0), trial(2, 1.01), trial(3, 1.02)]
    found = predict_run([*steady, unsteady, unsteady])
    assert found == replace(predict_run(steady), left_out=2)  # type: ignore[type-var]
    assert found is not None
    assert (found.trials, found.reason) == (3, None)
    fewer_than_half = predict_run([*steady, *[unsteady] * 4])
    assert fewer_than_half is not None
    assert (fewer_than_half.seconds, fewer_than_half.left_out) == (None, 0)
    assert fewer_than_half.reason == "4 of 7 trials were not steady"


def test_stalls_that_may_recur_are_added_at_their_rate() -> None:
    stalled = trial(2, 1.0)
    assert stalled.measured is not None
    state = replace(stalled.measured.steady_state, is_reached=False, reason="a stall at step 9", stall_share=0.04)
    projection = project_run(stalled)
    assert projection is not None
    found = predict_run([trial(1, 1.0), replace(stalled, measured=replace(stalled.measured, steady_state=state))])
    assert found is not None
    assert found.seconds is not None
    # 10,170 s, and with 4 % of the 10,001 s at the steady rate more
    later = projection.seconds + 0.04 * (projection.seconds - projection.overhead_seconds)
    assert sqrt(found.seconds.low * found.seconds.high) == pytest.approx(sqrt(projection.seconds * later))
    assert (found.trials, found.left_out, found.reason) == (2, 0, None)
    assert found.usd is not None
    assert projection.usd is not None
    training = projection.instance_hours * 3600
    dearer = float(projection.usd) * (1 + (later - projection.seconds) / training)
    assert sqrt(found.usd.low * found.usd.high) == pytest.approx(sqrt(float(projection.usd) * dearer))


def test_stalls_of_a_trial_without_billed_seconds_leave_its_cost_unknown() -> None:
    stalled = trial(2, 1.0)
    assert stalled.measured is not None
    state = replace(stalled.measured.steady_state, is_reached=False, reason="a stall at step 9", stall_share=0.04)
    unbilled = tuple(replace(attempt, billable_seconds=None) for attempt in stalled.attempts)
    measured = replace(stalled.measured, steady_state=state)
    found = predict_run([trial(1, 1.0), replace(stalled, measured=measured, attempts=unbilled)])
    assert found is not None
    assert found.seconds is not None
    assert found.usd is None


def test_interruptions_widen_the_interval_by_hand() -> None:
    # three trials of 10,110 (without the 60 s lost), 10,170 and 10,370 s, with 2 interruptions of 30 s each in the
    # 170 + 170 + 171.2 s of their training
    trials = [trial(1, 1.0, interruptions=2, lost_seconds=60.0), trial(2, 1.0), trial(3, 1.02)]
    found = predict_run(trials, confidence=0.8)
    assert found is not None
    assert found.seconds is not None
    assert found.interruptions_per_hour == pytest.approx(2 * 3600 / 511.2)
    # in 10,050, 10,110 and 10,310 s of training in the mean
    expected = 2 * (10_050 + 10_110 + 10_310) / 3 / 511.2
    added, added_variance = expected * 30, (expected + expected**2 / 2) * 30**2
    logs = [log(value) for value in (10_110, 10_170, 10_370)]
    typical = exp(sum(logs) / 3)
    spread = sqrt(variance(logs) * (1 + 1 / 3) + added_variance / (typical + added) ** 2)
    # t(0.9, 2) = 1.885618
    reach = 1.885618 * spread
    assert log(found.seconds.high / found.seconds.low) == pytest.approx(2 * reach, rel=1e-3)
    assert sqrt(found.seconds.high * found.seconds.low) == pytest.approx(typical + added, rel=1e-3)
    assert found.seconds.confidence == 0.8


def test_a_cost_that_one_trial_does_not_know_has_no_interval() -> None:
    unpriced = trial(2, 1.0)
    unpriced = replace(unpriced, price=replace(unpriced.price, usd_per_instance_hour=None))
    found = predict_run([trial(1, 1.0), unpriced])
    assert found is not None
    assert found.usd is None
    assert found.seconds is not None
