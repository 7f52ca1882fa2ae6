"""What a survey says of cells that were not measured, of failures, and of a goal's limit."""

from collections.abc import Sequence
from dataclasses import replace
from math import exp, inf, log, sqrt
from statistics import NormalDist, variance

import numpy as np
import pytest

from traindyno.core.search.fit import NormalPrior, Priors, WeightedProcess, fit
from traindyno.core.search.gaussian_process import Observation, covariances_of
from traindyno.core.search.kernel import Hyperparameters, similarity_tables
from traindyno.core.search.screening import screening_size, spread_points
from traindyno.core.search.space import Axis, Space
from traindyno.core.search.survey import LEAST_CHANCE, CellForecast, MeasuredCell, Survey, survey_cells

BATCHES, STRATEGIES = 5, 3
SPACE = Space(
    axes=(
        Axis(name="batch_size_per_device", levels=BATCHES, positions=(0.0, 0.25, 0.5, 0.75, 1.0)),
        Axis(name="strategy", levels=STRATEGIES, positions=None),
    ),
    points=tuple((batch, strategy) for batch in range(BATCHES) for strategy in range(STRATEGIES)),
)


def seconds(batch: int, strategy: int) -> float:
    """The larger the batch and the strategy's number, the better."""
    return 100 * exp(-0.3 * batch - 0.2 * strategy)


def seen_of(*indices: int, cost: float = 1.0) -> dict[int, MeasuredCell]:
    return {index: MeasuredCell(value=seconds(*SPACE.points[index]), trials=1, cost=cost) for index in indices}


def most_promising(survey: Survey) -> int:
    return max(range(len(survey.forecasts)), key=lambda index: survey.forecasts[index].gain_per_cost)


def test_a_trend_is_continued_to_cells_that_were_not_measured() -> None:
    survey = survey_cells(SPACE, seen_of(0, 1, 2, 3, 6, 7, 8), [], tolerance=0.02)
    assert survey.best == 8
    better, worse = survey.forecasts[14], survey.forecasts[4]
    assert better.low < 1
    assert better.chance > 0.3
    assert worse.low > 1
    assert worse.chance < LEAST_CHANCE
    assert survey.forecasts[8].chance == 0


def test_gain_is_per_cost_of_a_trial() -> None:
    seen = {
        index: replace(each, cost=100.0 ** SPACE.points[index][0])
        for index, each in seen_of(0, 1, 2, 3, 6, 7, 12).items()
    }
    survey = survey_cells(SPACE, seen, [], tolerance=0.02)
    flat = survey_cells(SPACE, seen_of(0, 1, 2, 3, 6, 7, 12), [], tolerance=0.02)
    assert SPACE.points[most_promising(flat)] == (4, 2)
    assert SPACE.points[most_promising(survey)][0] < 4


def test_failures_make_their_neighbours_likely_to_fail() -> None:
    plain = survey_cells(SPACE, seen_of(0, 1, 2, 3, 6), [], tolerance=0.02)
    survey = survey_cells(SPACE, seen_of(0, 1, 2, 3, 6), [12, 13], tolerance=0.02)
    assert {each.works for each in plain.forecasts} == {1.0}
    # Strategy 2 at the largest batch, beside two failures, and at the smallest, beside two that completed.
    assert survey.forecasts[14].works < 0.4
    assert survey.forecasts[5].works > 0.8
    assert survey.forecasts[14].chance < plain.forecasts[14].chance / 2


def test_one_failure_excludes_no_cell() -> None:
    survey = survey_cells(SPACE, seen_of(0, 3, 6, 9), [12], tolerance=0.02)
    assert min(each.works for each in survey.forecasts) >= 0.25


def test_without_any_cell_that_works_the_survey_knows_failures_only() -> None:
    survey = survey_cells(SPACE, {}, [0, 4, 8], tolerance=0.02)
    assert survey.best is None
    assert max(each.works for each in survey.forecasts) < 1


def test_a_limit_excludes_cells_that_will_break_it() -> None:
    seen = {
        index: MeasuredCell(value=each.value, trials=1, cost=1.0, limited=1 / each.value)
        for index, each in seen_of(0, 1, 2, 3, 6, 7, 8).items()
    }
    limit = 1 / seconds(1, 2)
    survey = survey_cells(SPACE, seen, [], tolerance=0.02, limit=limit)
    assert survey.best == 6  # the best of those within the limit
    assert survey.forecasts[14].works < 0.3
    assert survey.forecasts[0].works > 0.95


def test_screening_takes_each_level_of_a_name_and_both_ends_of_a_number_first() -> None:
    size = screening_size(SPACE)
    assert size == 1 + 2 + 2 + 1
    chosen = [SPACE.points[index] for index in spread_points(SPACE, size, first=0)]
    assert len(set(chosen)) == size
    assert chosen[0] == (0, 0)
    assert {strategy for _, strategy in chosen} == set(range(STRATEGIES))
    assert {batch for batch, _ in chosen} & {3, 4}
    assert spread_points(SPACE, size, first=0) == spread_points(SPACE, size, first=0)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_few_cells_are_all_screened(count: int) -> None:
    space = Space(axes=(Axis(name="strategy", levels=3, positions=None),), points=((0,), (1,), (2,))[:count])
    assert sorted(spread_points(space, screening_size(space), first=0)) == list(range(count))


def noise_prior(replicates: Sequence[Sequence[float]]) -> NormalPrior:
    """The prior is 1.5 %, worth four degrees of freedom, and what repeated trials show."""
    groups = [[log(value) for value in group] for group in replicates if len(group) > 1]
    degrees = 4 + sum(len(group) - 1 for group in groups)
    squares = 4 * 0.015**2 + sum(variance(group) * (len(group) - 1) for group in groups)
    return NormalPrior(mean=log(squares / degrees), deviation=sqrt(2 / degrees))


def fitted(
    values: dict[int, float], trials: dict[int, int], replicates: Sequence[Sequence[float]]
) -> Sequence[WeightedProcess]:
    observations = [
        Observation(point=SPACE.points[index], value=log(values[index]), trials=trials.get(index, 1))
        for index in sorted(values)
    ]
    spread = variance(map(log, values.values())) if len(values) > 2 else 0.3**2
    priors = Priors(variance=NormalPrior(mean=log(max(spread, 0.02**2)), deviation=1.0), noise=noise_prior(replicates))
    return fit(SPACE.axes, observations, priors)


@pytest.mark.parametrize(
    ("seen", "replicates"),
    [
        (seen_of(0, 1, 2, 3, 6, 7, 8), ()),
        (seen_of(0, 14), ()),
        ({**seen_of(0, 4), 8: MeasuredCell(value=30.0, trials=3, cost=1.0)}, [(29.0, 30.0, 31.2), (10.0,), (5.0, 5.2)]),
    ],
)
def test_a_forecast_is_a_mixture_of_the_models_normal_distributions(
    seen: dict[int, MeasuredCell], replicates: Sequence[Sequence[float]]
) -> None:
    zone = log(1.02)
    survey = survey_cells(SPACE, seen, [], tolerance=0.02, replicates=replicates)
    values, trials = ({index: getattr(each, name) for index, each in seen.items()} for name in ("value", "trials"))
    models = fitted(values, trials, replicates)
    posteriors = [[model.process.posterior(point) for point in SPACE.points] for model in models]
    means = [
        sum(model.weight * found[index].mean for model, found in zip(models, posteriors, strict=True))
        for index in range(len(SPACE.points))
    ]
    assert survey.best == min(seen, key=means.__getitem__)
    for index, forecast in enumerate(survey.forecasts):
        if index == survey.best:
            continue
        parts = []
        for model, found in zip(models, posteriors, strict=True):
            one, other = found[index], found[survey.best]
            covariance = model.process.covariance(one, other)
            spread = sqrt(max(0.0, one.variance + other.variance - 2 * covariance))
            parts.append((model.weight, NormalDist(one.mean - other.mean, spread)))
        mean = sum(weight * normal.mean for weight, normal in parts)
        deviation = sqrt(sum(weight * (normal.mean**2 + normal.variance) for weight, normal in parts) - mean**2)
        assert forecast.ratio == pytest.approx(exp(mean))
        assert (forecast.low, forecast.high) == pytest.approx(
            (exp(mean - 1.959964 * deviation), exp(mean + 1.959964 * deviation))
        )
        assert forecast.better == pytest.approx(sum(weight * normal.cdf(-zone) for weight, normal in parts))
        gain = sum(
            weight * ((-zone - normal.mean) * normal.cdf(-zone) + normal.variance * normal.pdf(-zone))
            for weight, normal in parts
        )
        assert forecast.gain == pytest.approx(gain)
        assert (forecast.works, forecast.chance) == (1.0, forecast.better)


def test_the_best_cell_gains_nothing_on_itself() -> None:
    forecast = survey_cells(SPACE, seen_of(0, 3, 6), [], tolerance=0.02).forecasts[6]
    assert (forecast.ratio, forecast.low, forecast.high, forecast.better, forecast.gain) == (1, 1, 1, 0, 0)


def test_a_cell_that_may_not_win_is_never_the_best() -> None:
    seen = seen_of(0, 3, 6)
    barred = {**seen, 6: replace(seen[6], may_win=False)}
    assert (
        survey_cells(SPACE, seen, [], tolerance=0.02).best,
        survey_cells(SPACE, barred, [], tolerance=0.02).best,
    ) == (
        6,
        3,
    )
    none = survey_cells(SPACE, {6: replace(seen[6], may_win=False, cost=7.0)}, [], tolerance=0.02)
    assert none.best is None
    unknown = CellForecast(ratio=1.0, low=0.0, high=inf, better=1.0, works=1.0, gain=1.0, cost=7.0)
    assert all(replace(forecast, cost=7.0) == unknown for forecast in none.forecasts)
    assert [forecast.cost for forecast in none.forecasts] == pytest.approx([7.0] * len(SPACE.points))


@pytest.mark.parametrize(("limit", "best"), [(1 / seconds(2, 0), 6), (1 / seconds(2, 0) - 1e-9, 3)])
def test_a_cell_at_the_limit_keeps_it(limit: float, best: int) -> None:
    seen = {index: replace(each, limited=1 / each.value) for index, each in seen_of(0, 3, 6).items()}
    assert survey_cells(SPACE, seen, [], tolerance=0.02, limit=limit).best == best
    # what is not known of a cell does not forbid it
    unknown = {**seen, 6: replace(seen[6], limited=None)}
    assert survey_cells(SPACE, unknown, [], tolerance=0.02, limit=limit).best == 6


def test_the_probability_to_keep_a_limit_is_that_of_the_models() -> None:
    seen = {index: replace(each, limited=1 / each.value) for index, each in seen_of(0, 1, 3, 6, 8).items()}
    limit = 1 / seconds(1, 1)
    survey = survey_cells(SPACE, seen, [], tolerance=0.02, limit=limit)
    models = fitted({index: each.limited or 0.0 for index, each in seen.items()}, {}, ())
    for point, forecast in zip(SPACE.points, survey.forecasts, strict=True):
        found = [(model.weight, model.process.posterior(point)) for model in models]
        expected = sum(weight * NormalDist(each.mean, sqrt(each.variance)).cdf(log(limit)) for weight, each in found)
        assert forecast.works == pytest.approx(expected, abs=1e-9)


def test_the_probability_to_succeed_is_that_of_a_regression_on_labels() -> None:
    succeeded, failed = (0, 1, 3), (12, 13)
    survey = survey_cells(SPACE, seen_of(*succeeded), list(failed), tolerance=0.02)
    labels = {**dict.fromkeys(succeeded, 1.0), **dict.fromkeys(failed, -1.0)}
    observations = [Observation(point=SPACE.points[index], value=labels[index]) for index in sorted(labels)]
    priors = Priors(variance=NormalPrior(mean=0.0, deviation=0.5), noise=NormalPrior(mean=log(0.05), deviation=0.5))
    models = fit(SPACE.axes, observations, priors)
    for point, forecast in zip(SPACE.points, survey.forecasts, strict=True):
        found = [(model.weight, model.process.posterior(point)) for model in models]
        expected = sum(weight * NormalDist().cdf(each.mean / sqrt(each.variance + 0.25)) for weight, each in found)
        # two failures leave a quarter of a quarter
        assert forecast.works == pytest.approx(max(0.0625, expected))


def test_costs_are_smoothed_as_the_values_are() -> None:
    seen = {index: replace(each, cost=2.0 + index) for index, each in seen_of(0, 4, 8, 10).items()}
    survey = survey_cells(SPACE, seen, [], tolerance=0.02)
    first = fitted({index: each.value for index, each in seen.items()}, {}, ())[0].process
    posteriors = [first.posterior(point) for point in SPACE.points]
    expected = first.mean_of([log(2.0 + index) for index in (0, 4, 8, 10)], posteriors)
    assert [forecast.cost for forecast in survey.forecasts] == pytest.approx([exp(value) for value in expected])
    forecast = survey.forecasts[14]
    assert forecast.gain_per_cost == pytest.approx(forecast.gain * forecast.works / forecast.cost)


def greedy(space: Space, count: int, first: int, stride: int) -> list[int]:
    """Each point is the one after which the variances of every ``stride``-th point add up to the least."""
    hyperparameters = Hyperparameters(
        variance=0.0, noise=0.0, weights=(0.0,) * len(space.axes), lengths=(0.0,) * len(space.axes)
    )
    tables = similarity_tables(space.axes, hyperparameters)
    prior = np.array([covariances_of(point, space.points, tables, 1.0) for point in space.points])

    def left(chosen: list[int]) -> float:
        noisy = prior[np.ix_(chosen, chosen)] + 0.01 * np.eye(len(chosen))
        shared = prior[chosen][:, ::stride]
        return float(np.trace(prior[::stride, ::stride]) - np.trace(shared.T @ np.linalg.solve(noisy, shared)))

    chosen = [first]
    while len(chosen) < count:
        rest = [index for index in range(len(space.points)) if index not in chosen]
        chosen.append(min(rest, key=lambda index: left([*chosen, index])))
    return chosen


def test_the_first_cells_reduce_the_variance_of_all_most() -> None:
    uneven = Space(
        axes=(
            Axis(name="batch_size_per_device", levels=5, positions=(0.0, 0.11, 0.37, 0.7, 1.0)),
            Axis(name="strategy", levels=3, positions=None),
        ),
        points=tuple((batch, strategy) for batch in range(5) for strategy in range(3) if (batch, strategy) != (4, 1)),
    )
    assert spread_points(uneven, 6, first=4) == greedy(uneven, 6, 4, stride=1)


def test_of_many_cells_every_third_stands_for_all() -> None:
    positions = tuple((index / 259) ** 1.3 for index in range(260))
    many = Space(
        axes=(Axis(name="batch_size_per_device", levels=260, positions=positions),),
        points=tuple((index,) for index in range(260)),
    )
    # 260 cells are more than twice 128
    assert spread_points(many, 3, first=0) == greedy(many, 3, 0, stride=3)


def space_of(count: int, *axes: Axis) -> Space:
    return Space(axes=axes, points=((0,) * len(axes),) * count)


def test_a_third_more_cells_than_the_main_effects_need_and_four_at_least() -> None:
    names, numbers = Axis(name="a", levels=6, positions=None), Axis(name="b", levels=3, positions=(0.0, 0.5, 1.0))
    pair = Axis(name="c", levels=2, positions=(0.0, 1.0))
    # 1 + 5 + 2 = 8, and 2 more; 1 + 1 = 2; 1 + 5 + 1 = 7, and 2 more
    assert screening_size(space_of(50, names, numbers)) == 10
    assert screening_size(space_of(50, pair)) == 4
    assert screening_size(space_of(50, names, pair)) == 9
    assert screening_size(space_of(3, names, numbers)) == 3
