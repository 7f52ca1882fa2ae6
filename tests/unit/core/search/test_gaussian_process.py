"""The Gaussian process against numpy's linear algebra."""

import random
from dataclasses import replace
from math import exp, log, sqrt

import numpy as np
import pytest

from traindyno.core.search.fit import NormalPrior, Priors, WeightedProcess, fit
from traindyno.core.search.gaussian_process import JITTER, Observation, condition, covariances_of
from traindyno.core.search.kernel import Hyperparameters, similarity_tables
from traindyno.core.search.space import Axis

AXES = (
    Axis(name="batch_size_per_device", levels=4, positions=(0.0, 0.3, 0.7, 1.0)),
    Axis(name="strategy", levels=3, positions=None),
)
POINTS: list[tuple[int, ...]] = [(first, second) for first in range(4) for second in range(3)]
GIVEN = Hyperparameters(variance=log(0.2), noise=log(0.01), weights=(log(0.5), log(2.0)), lengths=(log(0.6), 0.0))


def observations() -> list[Observation]:
    source = random.Random(1)
    return [
        Observation(point=point, value=source.gauss(0, 1), trials=1 + index % 3)
        for index, point in enumerate(POINTS[::2])
    ]


def test_the_posterior_is_that_of_the_textbook() -> None:
    seen = observations()
    process = condition(AXES, seen, GIVEN, center=0.3)
    tables = similarity_tables(AXES, GIVEN)
    prior = np.array([covariances_of(point, POINTS, tables, 0.2) for point in POINTS])
    at = [POINTS.index(each.point) for each in seen]
    noisy = prior[np.ix_(at, at)] + np.diag([0.01 / each.trials + 0.2 * JITTER for each in seen])
    solved = np.linalg.solve(noisy, prior[at])
    values = np.array([each.value for each in seen]) - 0.3
    posterior = prior - prior[:, at] @ solved
    found = [process.posterior(point) for point in POINTS]
    assert [each.mean for each in found] == pytest.approx(list(0.3 + solved.T @ values))
    assert [each.variance for each in found] == pytest.approx(list(np.diag(posterior)))
    assert process.covariance(found[1], found[4]) == pytest.approx(posterior[1, 4])
    _, log_determinant = np.linalg.slogdet(noisy)
    assert process.log_likelihood == pytest.approx(-(values @ np.linalg.solve(noisy, values) + log_determinant) / 2)


def test_cell_is_most_similar_to_itself_and_an_axis_of_small_weight_hardly_counts() -> None:
    tables = similarity_tables(
        AXES, Hyperparameters(variance=0.0, noise=0.0, weights=(0.0, log(1e-6)), lengths=(0.0, 0.0))
    )
    same, other_strategy, other_batch = covariances_of((0, 0), [(0, 0), (0, 1), (3, 0)], tables, 1.0)
    assert same == pytest.approx(1.0)
    assert other_strategy == pytest.approx(1.0, abs=1e-5)
    assert other_batch < 0.9


def test_the_fit_finds_which_axis_matters() -> None:
    source = random.Random(2)
    seen = [Observation(point=point, value=0.5 * point[1] + source.gauss(0, 0.01)) for point in POINTS]
    priors = Priors(
        variance=NormalPrior(mean=log(0.1), deviation=1.0), noise=NormalPrior(mean=log(1e-4), deviation=0.5)
    )
    models = fit(AXES, seen, priors)
    assert sum(model.weight for model in models) == pytest.approx(1.0)
    best = models[0].process.tables
    # Two levels of the batch size are compared with two strategies.
    assert best[0][0][3] > best[1][0][2]
    without = fit(AXES, [each for each in seen if each.point != (2, 2)], priors)
    predicted = sum(model.weight * model.process.posterior((2, 2)).mean for model in without)
    assert predicted == pytest.approx(1.0, abs=0.05)


def test_few_observations_leave_several_sets_of_hyperparameters() -> None:
    priors = Priors(
        variance=NormalPrior(mean=log(0.1), deviation=1.0), noise=NormalPrior(mean=log(1e-4), deviation=0.5)
    )
    models = fit(AXES, [Observation(point=(0, 0), value=1.0), Observation(point=(3, 2), value=1.2)], priors)
    assert len(models) > 2
    assert max(model.weight for model in models) < 0.9


def test_another_quantity_of_the_same_cells_is_as_smooth() -> None:
    seen = observations()
    others = [5.0 + index**2 for index in range(len(seen))]
    process = condition(AXES, seen, GIVEN, center=0.3)
    found = process.mean_of(others, [process.posterior(point) for point in POINTS])
    center = sum(others) / len(others)
    same = [replace(each, value=value) for each, value in zip(seen, others, strict=True)]
    direct = condition(AXES, same, GIVEN, center=center)
    assert found == pytest.approx([direct.posterior(point).mean for point in POINTS])


def test_the_similarity_of_two_levels_by_hand() -> None:
    numbers, names = similarity_tables(AXES, GIVEN)
    # Matern 3/2 at a distance of 0.3 with a length of 0.6: x = sqrt(3) / 2; a weight of 0.5
    x = sqrt(3) * 0.3 / 0.6
    assert numbers[0][1] == numbers[1][0] == pytest.approx((1 + 0.5 * (1 + x) * exp(-x)) / 1.5)
    # names are the same or not: 1 of 1 + 2
    assert names[0] == pytest.approx((1.0, 1 / 3, 1 / 3))
    assert [numbers[level][level] for level in range(4)] == pytest.approx([1.0] * 4)


def test_sets_of_hyperparameters_are_weighed_by_their_posterior_probability() -> None:
    """A set without axes is the two variances, which the factors show."""
    priors = Priors(
        variance=NormalPrior(mean=log(0.1), deviation=1.0), noise=NormalPrior(mean=log(0.01), deviation=0.5)
    )
    seen = [Observation(point=(), value=value, trials=trials) for value, trials in ((1.0, 1), (1.4, 1), (1.1, 2))]
    models = fit((), seen, priors)
    assert 2 < len(models) <= 6

    def score(model: WeightedProcess) -> float:
        process = model.process
        noise = process.factor[0][0] ** 2 - process.variance * (1 + JITTER)
        return (
            process.log_likelihood
            - (log(process.variance) - log(0.1)) ** 2 / 2
            - ((log(noise) - log(0.01)) / 0.5) ** 2 / 2
        )

    shares = [exp(score(model) - score(models[0])) for model in models]
    assert min(shares) >= 0.02
    assert max(shares) == 1
    assert [model.weight for model in models] == pytest.approx([share / sum(shares) for share in shares])
    assert models[0].process.center == pytest.approx(3.5 / 3)


def test_the_search_makes_levels_alike_on_the_axis_that_does_not_matter() -> None:
    source = random.Random(4)
    seen = [Observation(point=point, value=point[0] + source.gauss(0, 0.05)) for point in POINTS]
    priors = Priors(variance=NormalPrior(mean=0.0, deviation=1.0), noise=NormalPrior(mean=log(0.01), deviation=1.0))
    (best, *_) = fit(AXES, seen, priors)
    numbers, names = best.process.tables
    # the prior's weight of 0.3 would give names a similarity of 1 / 1.3 = 0.77
    assert names[0][1] > 0.93
    assert numbers[0][3] < 0.77
