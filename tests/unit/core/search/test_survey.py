"""What a survey says of cells that were not measured, of failures, and of a goal's limit."""

from dataclasses import replace
from math import exp

import pytest

from traindyno.core.search.screening import screening_size, spread_points
from traindyno.core.search.space import Axis, Space
from traindyno.core.search.survey import LEAST_CHANCE, Seen, Survey, survey_cells

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


def seen_of(*indices: int, cost: float = 1.0) -> dict[int, Seen]:
    return {index: Seen(value=seconds(*SPACE.points[index]), trials=1, cost=cost) for index in indices}


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
        index: Seen(value=each.value, trials=1, cost=1.0, limited=1 / each.value)
        for index, each in seen_of(0, 1, 2, 3, 6, 7, 8).items()
    }
    limit = 1 / seconds(1, 2)
    survey = survey_cells(SPACE, seen, [], tolerance=0.02, limit=limit)
    assert survey.best == 6  # of those within the limit
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
