"""Scaling curves: recovered terms, the published ALBERT table with its largest size held out, and where to stop."""

import random

import pytest

from traindyno.core.measurement.least_squares import fit_not_negative
from traindyno.core.verdict.scaling_fit import ScalingFit, SizedTime, fit_scaling
from traindyno.core.verdict.scaling_text import describe_scaling

EXAMPLES = 640_000
# The published table: samples/s with SMDDP, 16 samples per GPU and no loader workers, and the gain of 12 workers.
ALBERT_RATES = {2: 3234.6, 4: 5436.9, 8: 8094.2, 16: 10814.1}
ALBERT_GAINS = {2: 0.1553, 4: 0.2398, 8: 0.4114, 16: 0.6037}


def albert(*workers: int) -> list[SizedTime]:
    return [
        sized(count, EXAMPLES / rate / (1 + (ALBERT_GAINS[count] if each else 0)), workers=each)
        for each in workers
        for count, rate in ALBERT_RATES.items()
    ]


def sized(count: int, seconds: float, *, workers: int = 0, variation: float | None = None) -> SizedTime:
    return SizedTime(
        cell_id=f"{count}-{workers}",
        instance_count=count,
        loader_workers=workers,
        seconds=seconds,
        variation=variation,
    )


def fitted(times: list[SizedTime], tolerance: float = 0.02) -> ScalingFit:
    found = fit_scaling(times, tolerance=tolerance)
    assert found is not None
    return found


def test_known_terms_are_recovered() -> None:
    times = [sized(count, 10 + 800 / count + 2 * count) for count in (1, 2, 4, 8, 16, 32)]
    fit = fitted(times)
    assert fit.communication == "N"
    assert fit.seconds_of_terms == pytest.approx(
        {"serial": 10, "compute / N": 800, "communication": 2, "loading / N": 0, "shared loading": 0}, abs=1e-6
    )
    # T falls while 800/N^2 > 2: up to N = 20
    assert fit.fastest_instances == 20


def test_loader_workers_share_the_loading() -> None:
    times = [
        sized(count, 5 + (400 + 600 / (1 + workers)) / count, workers=workers)
        for count in (1, 2, 4, 8)
        for workers in (0, 3, 11)
    ]
    terms = fitted(times).seconds_of_terms
    assert terms["loading / N"] == pytest.approx(600)
    assert terms["compute / N"] == pytest.approx(400)


@pytest.mark.parametrize("workers", [(0,), (0, 12)])
def test_the_largest_albert_size_is_predicted_from_the_others_within_10_percent(workers: tuple[int, ...]) -> None:
    fit = fitted(albert(*workers))
    assert len(fit.held_out) == len(workers)
    for held in fit.held_out:
        assert abs(held.error) < 0.1
        assert held.predicted.interval is not None
        assert held.predicted.interval.low < held.measured_seconds < held.predicted.interval.high
    assert [prediction.instance_count for prediction in fit.next_sizes] == [32] * len(workers)


def test_albert_pays_in_time_and_not_in_money() -> None:
    fit = fitted(albert(0))
    # 39.4 s + 315.6 s / N: each node saves time; N x T = 39.4 N + 315.6 rises by 10 % from 2 to 3 nodes
    assert (fit.fastest_instances, fit.cheapest_instances) == (None, 2)
    lines = describe_scaling(fit)
    assert "more than 2 instances raise the cost of a sample" in lines[-1]
    assert "each further instance saves time up to 128 instances" in lines[-2]
    assert any("on 32 instances" in line for line in lines)


def test_perfect_scaling_costs_nothing_more() -> None:
    fit = fitted([sized(count, 800 / count, variation=0.01) for count in (1, 2, 4, 8)])
    assert (fit.fastest_instances, fit.cheapest_instances) == (None, None)


def test_the_interval_covers_the_next_size_as_often_as_it_says() -> None:
    rng = random.Random(5)
    covered = 0
    for _ in range(200):
        times = [sized(count, (20 + 800 / count) * rng.gauss(1, 0.02)) for count in (1, 2, 4, 8, 16)]
        (prediction,) = fitted(times).next_sizes
        true = (20 + 800 / 32) * rng.gauss(1, 0.02)
        assert prediction.interval is not None
        covered += prediction.interval.low <= true <= prediction.interval.high
    # 95 % of 200 is 190, less two standard errors of 3
    assert covered >= 184


def test_two_sizes_make_no_curve() -> None:
    assert fit_scaling([sized(1, 10), sized(2, 6)], tolerance=0.02) is None


def test_no_coefficient_is_negative() -> None:
    # super-linear: T x N falls, which only a negative serial term could follow
    fit = fitted([sized(count, 800 / count - 4) for count in (1, 2, 4, 8)])
    assert all(value >= 0 for value in fit.seconds_of_terms.values())


def test_a_term_that_explains_nothing_is_left_out() -> None:
    rows = [(1.0, x, x * x) for x in (1.0, 2.0, 3.0, 4.0, 5.0)]
    fit = fit_not_negative(rows, [1 + 2 * x for _, x, _ in rows])
    assert fit is not None
    assert fit.used == (0, 1)
    assert fit.coefficients == pytest.approx((1, 2, 0))
