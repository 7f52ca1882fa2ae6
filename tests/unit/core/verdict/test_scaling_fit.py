"""Scaling curves: recovered terms, the published ALBERT table with its largest size held out, and where to stop."""

import random
from dataclasses import replace
from math import sqrt

import pytest

from traindyno.core.statistics.least_squares import fit_not_negative
from traindyno.core.verdict.scaling_fit import HeldOut, ScalingFit, ScalingPrediction, SizedTime, fit_scaling
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


def test_a_time_that_never_falls_stops_paying_at_once() -> None:
    fit = fitted([sized(count, 10, variation=0.05) for count in (1, 2, 4)])
    assert fit.seconds_of_terms["serial"] == pytest.approx(10)
    assert (fit.fastest_instances, fit.cheapest_instances, fit.followed_to) == (1, 1, 32)
    assert fit.communication == "log2(N)"
    assert fit.seconds(7, 0) == pytest.approx(10)


def test_the_interval_of_a_next_size_has_the_scatter_of_a_cell_and_of_the_curve() -> None:
    fit = fitted([sized(count, 10, variation=spread) for count, spread in ((1, 0.003), (2, 0.004), (4, None))])
    (found,) = fit.next_sizes
    assert (found.instance_count, found.loader_workers) == (8, 0)
    assert found.seconds == pytest.approx(10)
    # spread sqrt((9 + 16) / 2) / 1000; three cells tell the level: 1 + 1 / 3; t(0.975, 1) = 12.706205
    width = 12.706205 * sqrt(12.5e-6) * sqrt(4 / 3)
    assert found.interval is not None
    assert (found.interval.low, found.interval.high) == pytest.approx((10 * (1 - width), 10 * (1 + width)), rel=1e-5)
    wide = fitted([sized(count, 10, variation=0.5) for count in (1, 2, 4)]).next_sizes[0].interval
    assert wide is not None
    assert wide.low == 0


def test_what_the_curve_leaves_over_counts_where_trials_scatter_less() -> None:
    times = [(1, 10.3), (2, 9.7), (4, 10.2), (8, 9.8), (16, 10.0)]
    still = fitted([sized(count, seconds, variation=1e-6) for count, seconds in times])
    unknown = fitted([sized(count, seconds) for count, seconds in times])
    assert still.next_sizes == unknown.next_sizes
    assert still.relative_residual > 0.01


@pytest.mark.parametrize(("ratio", "fastest"), [(551.0, 23), (553.0, None)])
def test_the_curve_is_followed_to_eight_times_the_largest_size(ratio: float, fastest: int | None) -> None:
    # c / N + k N rises from N on once N (N + 1) >= c / k: 23 x 24 is 552; 24 instances are the last
    fit = fitted([sized(count, ratio / count + count) for count in (1, 2, 3)])
    assert (fit.followed_to, fit.fastest_instances) == (24, fastest)


def test_the_cost_may_rise_by_the_tolerance() -> None:
    # N T = N + 99: 101, 102 and 103 for 2, 3 and 4 instances, of at least 101 with 2
    times = [sized(count, 1 + 99 / count) for count in (2, 4, 8)]
    assert [fitted(times, tolerance).cheapest_instances for tolerance in (0.0, 0.015, 0.025)] == [2, 3, 4]


def test_a_size_is_held_out_if_three_others_remain() -> None:
    three = fitted([sized(count, 10 + 80 / count) for count in (1, 2, 4)])
    assert three.held_out == ()
    four = fitted([sized(count, 10 + 80 / count) for count in (1, 2, 4, 8)])
    (held,) = four.held_out
    assert (held.predicted.instance_count, held.measured_seconds) == (8, 20)
    assert held.predicted.seconds == pytest.approx(20)
    slower = fitted([*(sized(count, 10 + 80 / count) for count in (1, 2, 4)), sized(8, 25)])
    # 20 predicted, 25 measured
    assert slower.held_out[0].error == pytest.approx(-0.2)


def test_each_number_of_loader_workers_has_a_next_size() -> None:
    times = [sized(count, 10 + 100 / (1 + workers), workers=workers) for count in (1, 2, 4) for workers in (9, 0)]
    fit = fitted(times)
    assert [(each.instance_count, each.loader_workers) for each in fit.next_sizes] == [(8, 0), (8, 9)]
    assert [each.seconds for each in fit.next_sizes] == pytest.approx([110, 20])
    assert fit.seconds(3, 1) == pytest.approx(60)
    assert fit.seconds_of_terms["shared loading"] == pytest.approx(100)


def test_a_scaling_curve_in_sentences() -> None:
    times = [sized(count, 10 + 800 / count + 2 * count, variation=0.001) for count in (1, 2, 4, 8, 16, 32)]
    lines = describe_scaling(fitted(times))
    assert lines[0].startswith(
        "training time by number of instances N: serial: 10.0 s, compute / N: 13 min 20 s, N: 2.00 s; residual "
    )
    # 10 + 800 / 64 + 128
    (prediction,) = [line for line in lines if line.startswith("predicted: ")]
    assert prediction.startswith("predicted: 2 min 31 s (")
    assert prediction.endswith(" s) on 64 instances")
    assert "more than 20 instances save no time" in " ".join(lines)
    workers = [sized(count, 10 + 90 / (1 + each), workers=each) for count in (1, 2, 4) for each in (0, 9)]
    assert describe_scaling(fitted(workers))[-3].endswith("on 8 instances with 9 loader workers")
    assert describe_scaling(fitted(workers))[-4].endswith("on 8 instances")


def test_a_prediction_without_a_spread_has_no_range() -> None:
    fit = fitted([sized(count, 800 / count, variation=0.01) for count in (1, 2, 4, 8)])
    plain = ScalingPrediction(instance_count=16, loader_workers=0, seconds=50.0, interval=None)
    held = HeldOut(predicted=replace(plain, instance_count=8, seconds=90.0), measured_seconds=100.0)
    lines = describe_scaling(replace(fit, next_sizes=(plain,), held_out=(held,)))
    assert lines[1:3] == (
        "without the largest size, the curve predicts 90.0 s on 8 instances; measured: 100 s (−10.0 %)",
        "predicted: 50.0 s on 16 instances",
    )


def test_the_curve_is_that_of_the_loader_workers_at_the_largest_size() -> None:
    times = [sized(count, 10 + 800 / count, variation=0.001) for count in (1, 2, 4, 8)]
    more = [sized(2, 10 + 700 / 2, workers=4, variation=0.001)]
    assert fitted([*times, *more]).loader_workers == 0
    assert fitted([*times, sized(8, 10 + 700 / 8, workers=4, variation=0.001)]).loader_workers == 4
