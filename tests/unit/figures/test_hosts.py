"""Hosts as draws: what a comparison may claim depends on which machines the trials ran on."""

from dataclasses import replace
from math import exp, sqrt
from statistics import fmean, stdev

import pytest

from tests.unit.run_samples import known
from traindyno.figures.estimates import compare
from traindyno.figures.host_means import mean_over_hosts, one_more_run, update_prior
from traindyno.figures.hosts import (
    ANY_HOSTS,
    ONE_MACHINE,
    STATED_PRIOR,
    STATED_PRIORS,
    HostClass,
    HostSpread,
    host_class,
)
from traindyno.figures.model import compare_on_hosts
from traindyno.figures.trials import Trial, draw_count


def on(host: str | None, *logs: float) -> list[Trial]:
    hosts = frozenset(host.split()) if host else None
    return [Trial(value=exp(log), hosts=hosts) for log in logs]


def in_rounds(hosts: str, *logs: float) -> list[Trial]:
    """A trial in each round; a host's name is a letter."""
    placed = enumerate(zip(hosts, logs, strict=True))
    return [
        Trial(value=exp(log_seconds), hosts=frozenset(host), block=str(number))
        for number, (host, log_seconds) in placed
    ]


def needs_prior(first: list[Trial], second: list[Trial]) -> bool:
    return compare_on_hosts(first, second).host_variance is not None


def test_trials_on_hosts_of_their_own_or_on_unknown_ones_are_compared_as_they_are() -> None:
    values = [1.0, 1.1, 1.05], [0.9, 0.95, 0.99]
    unknown = compare_on_hosts(*([Trial(value=value) for value in side] for side in values))
    assert unknown.with_interval() == compare(*values)
    assert draw_count([Trial(value=1.0), Trial(value=1.0)]) == 2


def test_a_difference_between_two_single_hosts_may_be_the_hosts() -> None:
    # 5 % apart with hardly any noise: each cell's own host decides. sqrt(2) x 2 % = 2.8 %, t(0.975,
    # 3) = 3.182: 9.0 %
    first = on("a", 0.0, 0.001, -0.001)
    second = on("b", 0.05, 0.051, 0.049)
    comparison = compare_on_hosts(first, second)
    assert comparison.standard_error == pytest.approx(sqrt(2) * 0.02, rel=1e-2)
    assert known(comparison.p) > 0.1
    assert comparison.degrees_of_freedom == pytest.approx(3, rel=0.01)
    assert needs_prior(first, second)
    far = compare_on_hosts(first, on("b", 0.3, 0.301, 0.299))
    assert known(far.p) < 0.05


def test_the_spread_between_hosts_is_assumed_for_trials_repeated_on_one_host() -> None:
    assert needs_prior(on("a", 0.0, 0.001), on("b", 0.05) + on("c", 0.06))
    assert not needs_prior(on("a", 0.0), on("b", 0.05))
    assert not needs_prior(on("a", 0.0, 0.001) + on("d", 0.01), on("b", 0.05) + on("c", 0.06))


def test_the_prior_counts_for_a_cell_with_a_single_run_on_a_shared_host() -> None:
    assert needs_prior(on("a", 0.0, 0.001, -0.001), on("a", 0.05) + on("b", 0.06) + on("c", 0.04))


@pytest.mark.parametrize("rounds", [3, 5])
def test_rounds_each_on_one_host_pair_cells(rounds: int) -> None:
    """The second cell takes 5 % longer; rounds differ by 20 %, hosts by 10 %."""
    hosts = "abacb"[:rounds]
    levels = (0.0, 0.2, -0.1, 0.1, 0.3)
    sides = [
        [
            Trial(
                value=exp(level + lead + (host == "a") * 0.1),
                hosts=frozenset(host),
                block=str(number),
            )
            for number, (host, level) in enumerate(zip(hosts, levels, strict=False))
        ]
        for lead in (0.0, 0.05)
    ]
    noisy = [
        replace(trial, value=trial.value * (1 + 1e-4 * index))
        for index, trial in enumerate(sides[1])
    ]
    comparison = compare_on_hosts(sides[0], noisy)
    assert comparison.degrees_of_freedom == rounds - 1
    assert known(comparison.p) < 1e-4
    # rounds on different hosts do not pair them
    moved = [replace(trial, block=str((index + 1) % rounds)) for index, trial in enumerate(noisy)]
    assert (compare_on_hosts(sides[0], moved).p or 0.0) > 0.05


def test_on_one_shared_host_its_speed_cancels() -> None:
    first = on("a", 0.0, 0.01, -0.01)
    second = on("a", 0.05, 0.06, 0.04)
    comparison = compare_on_hosts(first, second)
    assert comparison.ratio == pytest.approx(exp(-0.05))
    # two variances of 0.0001, three trials each: sqrt(2 x 0.0001 / 3)
    assert comparison.standard_error == pytest.approx(sqrt(2e-4 / 3))
    # equal variances of three trials each: Welch's degrees of freedom are 2 + 2
    assert comparison.degrees_of_freedom == pytest.approx(4)
    assert not needs_prior(first, second)


def test_trials_repeated_on_hosts_count_as_their_means() -> None:
    first = on("a", 0.0, 0.002) + on("b", 0.04, 0.042)
    comparison = compare_on_hosts(first, on("c", 0.10, 0.102) + on("d", 0.14, 0.142))
    # a trial's own variance: (4 x 0.02^2 + 4 x 0.001^2) / 3; that of the means 0.001 and 0.041:
    # 0.0008
    own = (4 * 0.0004 + 4 * 1e-6) / 3
    between = (3 * 0.0004 + 0.0008 - own / 2) / 4
    assert comparison.standard_error == pytest.approx(sqrt(2 * (between / 2 + own / 4)))


def test_earlier_trials_update_the_prior_by_their_degrees_of_freedom() -> None:
    # two hosts 10 % apart, each trial as the other: variance 0.0953^2 / 2 = 0.00454 with 1 degree,
    # 0.02^2 with 3
    updated = known(update_prior([on("a", 0.0, 0.0) + on("b", 0.0953, 0.0953)], source="history"))
    assert (updated.degrees_of_freedom, updated.source) == (4, "history")
    assert updated.deviation == pytest.approx(sqrt((3 * 0.0004 + 0.00454) / 4), rel=1e-3)
    # hosts without a difference narrow the prior, and don't make it zero
    alike = known(update_prior([on("a", 0.0, 0.0) + on("b", 0.0, 0.0)], source="history"))
    assert alike.deviation == pytest.approx(sqrt(3 * 0.0004 / 4))


def test_trials_on_one_host_or_one_on_each_tell_nothing_about_hosts() -> None:
    assert update_prior([on("a", 0.0, 0.1), on("b", 0.2, 0.3)], source="history") is None
    assert update_prior([on("a", 0.0) + on("b", 0.1)], source="history") is None


def own_variance(cells: list[list[Trial]]) -> tuple[float, float]:
    """What the trials add to a prior of 2 % with three degrees: the variance and its degrees."""
    updated = known(update_prior(cells, source="test"))
    degrees = updated.degrees_of_freedom - 3
    return (updated.deviation**2 * updated.degrees_of_freedom - 3 * 0.0004) / degrees, degrees


def test_hosts_with_unequal_numbers_of_trials_are_weighed_by_the_method_of_moments() -> None:
    first = on("a", 0.0, 0.02) + on("b", 0.1)
    second = on("c", 0.0, 0.01, 0.05) + on("d", 0.2) + on("e", -0.1)
    # within: variances 0.0002 (1 degree) and 0.0007 (2 degrees): 0.0016 / 3
    own = 0.0016 / 3
    # between: means 0.01 and 0.1; 0.02, 0.2 and -0.1, with mean 0.04: squares 0.00405 and 0.0456 of
    # 3 degrees
    between = (0.00405 + 0.0456) / 3
    explained = own * (1 / 2 + 1 + 1 / 3 + 1 + 1) / 5
    variance = own_variance([first, second])
    assert variance == pytest.approx((between - explained, 3))
    # a cell on hosts without repeats, or on one host, tells nothing of the hosts, but repeats tell
    # the trials' own
    assert own_variance([first, second, on("f", 0.0) + on("g", 0.9)]) == variance
    # variance 0.0018 with 1 degree more: (0.0016 + 0.0018) / 4
    wider = own_variance([first, second, on("f", 0.0, 0.06)])
    assert wider == pytest.approx((between - explained * (0.0034 / 4) / own, 3))


@pytest.mark.parametrize("cells", range(1, 8))
def test_hosts_differing_less_than_their_trials_narrow_the_prior(cells: int) -> None:
    noisy = [on(f"{cell}1", 0.0, 0.1) + on(f"{cell}2", 0.001, 0.101) for cell in range(cells)]
    assert own_variance(noisy) == pytest.approx((0, cells), abs=1e-9)


def test_the_posterior_of_the_prior_weighs_a_wide_spread_by_its_degrees() -> None:
    prior = HostSpread(deviation=0.02, typical=0.02, degrees_of_freedom=5, source="history")
    cells = [on("a", 0.0, 0.0) + on("b", 0.1, 0.1) + on("c", 0.2, 0.2)]
    updated = known(update_prior(cells, source="both", prior=prior))
    # variance 0.01 with 2 degrees, 0.0004 with 5
    assert updated.deviation == pytest.approx(sqrt(0.022 / 7))
    assert (updated.degrees_of_freedom, updated.source) == (7, "both")


def test_one_host_of_a_cell_adds_the_assumed_spread_to_the_trials_own() -> None:
    spread = HostSpread(deviation=0.02, typical=0.02, degrees_of_freedom=4, source="history")
    mean = mean_over_hosts(on("a", 0.0, 0.02, 0.04), spread, inflation=1.5)
    # 0.0004 with 4 degrees; 1.5 x 0.0004 / 3 = 0.0002 with 2: 0.0006^2 / (0.0004^2 / 4 + 0.0002^2 /
    # 2)
    assert mean.mean == pytest.approx(0.02)
    assert mean.variance == pytest.approx(0.0006)
    assert mean.degrees_of_freedom == pytest.approx(36 / (16 / 4 + 4 / 2))


def test_several_hosts_with_repeats_count_as_one_value_each() -> None:
    trials = on("a", 0.0, 0.02) + on("b", 0.04) + on("c", 0.1)
    # a trial's own variance around 0.04; the means 0.01, 0.04 and 0.1 have variance 0.0021 around
    # 0.05
    own = (0.0016 + 0.0004 + 0.0036) / 3
    share = (0.5 + 1 + 1) / 3
    between = (3 * 0.0004 + 2 * (0.0021 - own * share)) / 5
    mean = mean_over_hosts(trials, STATED_PRIOR)
    assert mean.mean == pytest.approx(0.05)
    assert mean.variance == pytest.approx(between / 3 + own * share / 3)
    # one run: the middle of the published spreads, 1 %
    typical = (3 * 0.0001 + 2 * (0.0021 - own * share)) / 5
    run, degrees = one_more_run(trials, STATED_PRIOR)
    assert run == pytest.approx(typical * 4 / 3 + own * (1 + share / 3))
    assert 3 <= degrees <= 8


def test_draws_of_any_hosts_that_show_more_count_alone() -> None:
    unlike = on("a", 0.0, 0.002) + on("b", 0.1, 0.102)
    mean = mean_over_hosts(unlike, ANY_HOSTS)
    assert mean.variance == pytest.approx(0.1**2 / 2 / 2)
    assert mean.degrees_of_freedom == 1
    alike = on("a", 0.0, 0.002) + on("b", 0.01, 0.012)
    assert mean_over_hosts(alike, ANY_HOSTS) == mean_over_hosts(alike, STATED_PRIOR)


def test_one_machine_has_no_spread_between_hosts() -> None:
    trials = on("a", 0.0, 0.02, 0.04)
    mean = mean_over_hosts(trials, ONE_MACHINE)
    assert [mean.variance, mean.degrees_of_freedom] == pytest.approx([0.0004 / 3, 2])
    assert list(one_more_run(trials, ONE_MACHINE)) == pytest.approx([0.0004 * 4 / 3, 2])


def test_correlated_trials_widen_every_kind_of_comparison() -> None:
    factors = (2.0, 3.0)
    # own hosts: variances 0.0002 / 2 each, times 2 and 3
    unknown = compare_on_hosts(on(None, 0.0, 0.02), on(None, 0.0, 0.02), inflation=factors)
    assert unknown.standard_error == pytest.approx(sqrt(0.0005))
    # one shared host: the same
    within = compare_on_hosts(on("a", 0.0, 0.02), on("a", 0.0, 0.02), inflation=factors)
    assert within.standard_error == pytest.approx(sqrt(0.0005))
    # rounds: the larger factor for all
    sides = in_rounds("abc", 0.0, 0.2, 0.1), in_rounds("abc", 0.045, 0.255, 0.15)
    wider = compare_on_hosts(*sides, inflation=factors).standard_error
    assert wider == pytest.approx((compare_on_hosts(*sides).standard_error or 0.0) * sqrt(3))


def test_draws_are_sets_of_hosts() -> None:
    assert draw_count(on("a", 0.0, 0.1) + on("b", 0.2) + on(None, 0.3, 0.4)) == 4


def test_sets_sharing_a_host_are_one_draw() -> None:
    chain = on("a b", 0.0) + on("b c", 0.1) + on("c d", 0.2)
    assert draw_count(chain) == 1
    assert draw_count(chain + on("e f", 0.3)) == 2
    # also if the set that joins two of them comes last
    assert draw_count(on("a b", 0.0) + on("c d", 0.2) + on("b c", 0.1)) == 1
    # nine reserved nodes of each cell, eight at a time: two draws, told apart by no difference that
    # hosts may make
    nodes = "abcdefghi"
    first, second = (
        [
            trial
            for left, level in zip(nodes, levels, strict=False)
            for trial in on(" ".join(f"{cell}{name}" for name in nodes if name != left), level)
        ]
        for cell, levels in (("x", (0.0, 0.001, -0.001)), ("y", (0.05, 0.051, 0.049)))
    )
    assert needs_prior(first, second)
    p = known(compare_on_hosts(first, second).p)
    assert p > 0.05


def test_a_hosts_speed_cancels_only_in_rounds_of_both_cells_on_it() -> None:
    first = in_rounds("aabbc", 0.0, 0.001, 0.2, 0.199, -0.1)
    alike = compare_on_hosts(first, in_rounds("aabbc", 0.03, 0.031, 0.23, 0.229, -0.07))
    assert alike.degrees_of_freedom == 4
    assert (alike.standard_error or 0.0) < 0.002
    # rounds that share a host that does not cancel are one observation: those on a, on b and on c
    shifted = compare_on_hosts(first, in_rounds("uvwxy", 0.03, 0.05, 0.01, 0.02, 0.04))
    assert shifted.degrees_of_freedom == 2
    differences = [fmean(logs) for logs in ((-0.03, -0.049), (0.19, 0.179), (-0.14,))]
    assert shifted.standard_error == pytest.approx(stdev(differences) / sqrt(3))
    # two observations leave it to the prior
    assert needs_prior(first[:2], in_rounds("bb", 0.03, 0.031))
    assert needs_prior(in_rounds("aaaaa", *[0.0] * 5), in_rounds("bcdef", *[0.1] * 5))


def test_the_prior_is_of_the_runs_class() -> None:
    kinds = [host_class(1, 0.05), host_class(8, None), host_class(8, 0.2), host_class(1, 0.11)]
    assert kinds == [
        HostClass.ONE_HOST,
        HostClass.MANY_HOSTS,
        HostClass.INPUT_BOUND,
        HostClass.INPUT_BOUND,
    ]
    assert [STATED_PRIORS[kind].deviation for kind in kinds] == [0.02, 0.03, 0.04, 0.04]
