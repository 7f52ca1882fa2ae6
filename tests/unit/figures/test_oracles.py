"""The statistics of the core give the figures of scipy and statsmodels, on seeded samples."""

import random
from math import exp, log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.weightstats import CompareMeans, DescrStatsW

from tests.properties import examples
from tests.unit.run_samples import known
from traindyno.figures.distributions import (
    adjust_by_holm,
    gamma_quantile,
    incomplete_beta,
    t_density,
    t_quantile,
    two_sided_p,
)
from traindyno.figures.estimates import compare, comparison_of, estimate, estimate_share
from traindyno.figures.selection import Relation, count_contenders, relate, simultaneous

SAMPLES = range(20)


def sample(seed: int, count: int, level: float = 0.0, spread: float = 0.05) -> list[float]:
    source = random.Random(f"oracle {seed} {count} {level}")
    return [exp(level + source.gauss(0, spread)) for _ in range(count)]


@examples(150)
@given(st.floats(0.3, 1e9), st.floats(1e-5, 1 - 1e-5))
def test_students_t(degrees: float, probability: float) -> None:
    quantile = float(stats.t.ppf(probability, degrees))
    assert t_quantile(probability, degrees) == pytest.approx(quantile, rel=1e-7, abs=1e-9)
    assert two_sided_p(quantile, degrees) == pytest.approx(
        2 * stats.t.sf(abs(quantile), degrees), rel=1e-7
    )
    assert t_density(quantile, degrees) == pytest.approx(
        float(stats.t.pdf(quantile, degrees)), rel=1e-5
    )  # two gammas cancel


@examples(150)
@given(st.floats(0.1, 400), st.floats(0.1, 400), st.floats(0, 1))
def test_the_incomplete_beta_function(a: float, b: float, x: float) -> None:
    assert incomplete_beta(a, b, x) == pytest.approx(
        float(stats.beta.cdf(x, a, b)), rel=1e-9, abs=1e-13
    )


@examples(100)
@given(st.floats(0.05, 500), st.floats(0.001, 0.999))
def test_quantiles_of_the_gamma_distribution(shape: float, probability: float) -> None:
    assert gamma_quantile(probability, shape) == pytest.approx(
        float(stats.gamma.ppf(probability, shape)), rel=1e-6
    )


@pytest.mark.parametrize("seed", SAMPLES)
def test_welchs_comparison(seed: int) -> None:
    first = sample(seed, 3 + seed % 4)
    second = sample(seed, 2 + seed % 3, 0.04, 0.01 + 0.01 * seed)
    comparison = compare(first, second)
    logs = np.log(first), np.log(second)
    assert comparison.ratio == pytest.approx(float(stats.gmean(first) / stats.gmean(second)))
    oracle = stats.ttest_ind(*logs, equal_var=False)
    shares = [1 / len(first), 1 / len(second)]
    parts = [share**2 / (1 / share - 1) for share in shares]
    degrees = min(oracle.df, sum(shares) ** 2 / sum(parts))  # as if both spreads were equal
    assert comparison.degrees_of_freedom == pytest.approx(degrees, rel=1e-9)
    assert comparison.p == pytest.approx(2 * stats.t.sf(abs(oracle.statistic), degrees), rel=1e-8)
    apart = float(np.mean(logs[0]) - np.mean(logs[1]))
    error = CompareMeans(*map(DescrStatsW, logs)).std_meandiff_separatevar
    half = float(stats.t.ppf(0.975, degrees) * error)
    assert comparison.interval is not None
    assert (log(comparison.interval.low), log(comparison.interval.high)) == pytest.approx(
        (apart - half, apart + half), rel=1e-8
    )
    one_sided = stats.ttest_ind(logs[0] - log(1.02), logs[1], equal_var=False, alternative="less")
    below = stats.t.cdf(one_sided.statistic, degrees)
    assert comparison.p_at_least(1.02) == pytest.approx(below, rel=1e-8)


@pytest.mark.parametrize("seed", SAMPLES)
def test_the_interval_of_a_mean(seed: int) -> None:
    values = sample(seed, 2 + seed % 5)
    mean = estimate(values)
    low, high = stats.t.interval(
        0.95, len(values) - 1, loc=np.mean(np.log(values)), scale=stats.sem(np.log(values))
    )
    assert mean.interval is not None
    assert (mean.interval.low, mean.interval.high) == pytest.approx((exp(low), exp(high)), rel=1e-9)
    assert mean.mean == pytest.approx(float(stats.gmean(values)), rel=1e-12)
    assert mean.variation == pytest.approx(float(stats.variation(values, ddof=1)), rel=1e-9)


def test_the_interval_of_a_share() -> None:
    shares = [0.61, 0.66, 0.58, 0.63]
    low, high = stats.t.interval(0.95, 3, loc=np.mean(shares), scale=stats.sem(shares))
    mean = estimate_share(shares)
    assert mean.interval is not None
    assert (mean.interval.low, mean.interval.high) == pytest.approx((low, high), rel=1e-9)
    assert mean.variation == pytest.approx(float(stats.variation(shares, ddof=1)), rel=1e-9)


@pytest.mark.parametrize("seed", SAMPLES)
def test_holms_correction(seed: int) -> None:
    source = random.Random(seed)
    p_values = [source.random() ** 3 for _ in range(1 + seed % 7)]
    assert adjust_by_holm(p_values) == pytest.approx(
        list(multipletests(p_values, method="holm")[1])
    )
    assert adjust_by_holm([]) == []


@pytest.mark.parametrize("seed", SAMPLES)
def test_equivalence_is_schuirmanns_two_one_sided_tests(seed: int) -> None:
    first = sample(seed, 6, spread=0.004)
    second = sample(seed + 100, 6, 0.006, 0.004)
    comparison = compare(first, second)
    groups = CompareMeans(DescrStatsW(np.log(first)), DescrStatsW(np.log(second)))
    p, *_ = groups.ttost_ind(-log(1.02), log(1.02), usevar="unequal")
    (relation,) = relate([comparison], tolerance=0.02, significance=0.05)
    is_beaten = comparison.p is not None and comparison.p < 0.05 and comparison.ratio < 1
    assert (relation is Relation.EQUIVALENT) == (p < 0.05 and not is_beaten)


@pytest.mark.parametrize("cells", [3, 5, 8])
def test_the_simultaneous_interval_is_dunnetts_or_a_little_wider(cells: int) -> None:
    """Dunnett's is exact for equal variances; Bonferroni's form, ours, needs no such assumption."""
    control, *others = (np.log(sample(cell, 8, 0.0, 0.02)) for cell in range(cells))
    pooled = float(np.mean([np.var(group, ddof=1) for group in (control, *others)]))
    comparisons = [
        comparison_of(control.mean() - other.mean(), pooled * 2 / 8, 7 * cells) for other in others
    ]
    assert count_contenders(comparisons) == cells - 1
    oracle = stats.dunnett(*others, control=control, random_state=1).confidence_interval(0.95)
    for comparison, low, other in zip(comparisons, oracle.low, others, strict=True):
        interval, _ = simultaneous(comparisons, comparison, 0.05)
        ours = log(known(interval).high) - log(comparison.ratio)
        dunnetts = other.mean() - control.mean() - low
        assert 0.999 * dunnetts <= ours <= 1.15 * dunnetts
