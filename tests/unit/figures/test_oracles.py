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
from traindyno.figures.selection import Relation, count_contenders, relate
from traindyno.figures.settle import simultaneous

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
    first, second = sample(seed, 3 + seed % 4), sample(seed, 2 + seed % 3, 0.04, 0.01 + 0.01 * seed)
    found = compare(first, second)
    logs = np.log(first), np.log(second)
    assert found.ratio == pytest.approx(float(stats.gmean(first) / stats.gmean(second)))
    oracle = stats.ttest_ind(*logs, equal_var=False)
    assert found.p == pytest.approx(oracle.pvalue, rel=1e-9)
    assert found.degrees_of_freedom == pytest.approx(oracle.df, rel=1e-9)
    low, high = CompareMeans(*map(DescrStatsW, logs)).tconfint_diff(usevar="unequal")
    assert found.interval is not None
    assert (log(found.interval.low), log(found.interval.high)) == pytest.approx(
        (low, high), rel=1e-8
    )
    one_sided = stats.ttest_ind(logs[0] - log(1.02), logs[1], equal_var=False, alternative="less")
    assert found.p_at_least(1.02) == pytest.approx(one_sided.pvalue, rel=1e-8)


@pytest.mark.parametrize("seed", SAMPLES)
def test_the_interval_of_a_mean(seed: int) -> None:
    values = sample(seed, 2 + seed % 5)
    found = estimate(values)
    low, high = stats.t.interval(
        0.95, len(values) - 1, loc=np.mean(np.log(values)), scale=stats.sem(np.log(values))
    )
    assert found.interval is not None
    assert (found.interval.low, found.interval.high) == pytest.approx(
        (exp(low), exp(high)), rel=1e-9
    )
    assert found.mean == pytest.approx(float(stats.gmean(values)), rel=1e-12)
    assert found.variation == pytest.approx(float(stats.variation(values, ddof=1)), rel=1e-9)


def test_the_interval_of_a_share() -> None:
    shares = [0.61, 0.66, 0.58, 0.63]
    low, high = stats.t.interval(0.95, 3, loc=np.mean(shares), scale=stats.sem(shares))
    found = estimate_share(shares)
    assert found.interval is not None
    assert (found.interval.low, found.interval.high) == pytest.approx((low, high), rel=1e-9)
    assert found.variation == pytest.approx(float(stats.variation(shares, ddof=1)), rel=1e-9)


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
    first, second = sample(seed, 6, spread=0.004), sample(seed + 100, 6, 0.006, 0.004)
    found = compare(first, second)
    groups = CompareMeans(DescrStatsW(np.log(first)), DescrStatsW(np.log(second)))
    p, *_ = groups.ttost_ind(-log(1.02), log(1.02), usevar="unequal")
    (relation,) = relate([found], tolerance=0.02, significance=0.05)
    is_beaten = found.p is not None and found.p < 0.05 and found.ratio < 1
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
