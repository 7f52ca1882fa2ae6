"""The Gaussian process against numpy's linear algebra."""

import random
from math import log

import numpy as np
import pytest

from traindyno.core.search.fit import Normal, Priors, fit
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


def test_a_cell_is_as_alike_to_itself_as_can_be_and_an_axis_of_small_weight_hardly_counts() -> None:
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
    priors = Priors(variance=Normal(mean=log(0.1), deviation=1.0), noise=Normal(mean=log(1e-4), deviation=0.5))
    models = fit(AXES, seen, priors)
    assert sum(model.weight for model in models) == pytest.approx(1.0)
    best = models[0].process.tables
    # Of two levels of the batch size, and of two strategies.
    assert best[0][0][3] > best[1][0][2]
    without = fit(AXES, [each for each in seen if each.point != (2, 2)], priors)
    predicted = sum(model.weight * model.process.posterior((2, 2)).mean for model in without)
    assert predicted == pytest.approx(1.0, abs=0.05)


def test_few_observations_leave_several_sets_of_hyperparameters() -> None:
    priors = Priors(variance=Normal(mean=log(0.1), deviation=1.0), noise=Normal(mean=log(1e-4), deviation=0.5))
    models = fit(AXES, [Observation(point=(0, 0), value=1.0), Observation(point=(3, 2), value=1.2)], priors)
    assert len(models) > 2
    assert max(model.weight for model in models) < 0.9
