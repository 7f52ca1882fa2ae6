"""The recommended cell against the others, and its simultaneous intervals."""

from collections.abc import Sequence
from dataclasses import replace
from math import exp, log

import pytest

from tests.unit.core.verdict.test_reservations import on_host
from tests.unit.run_samples import completed_results, known, make_cell, make_suite
from traindyno.core.verdict.build_row import build_row
from traindyno.core.verdict.cell_runs import CellRuns, group_runs
from traindyno.core.verdict.figure_table import build_figures
from traindyno.figures.beyond import Range
from traindyno.figures.distributions import t_quantile
from traindyno.figures.estimates import Comparison, comparison_of
from traindyno.figures.judge import Recommendation, recommend
from traindyno.figures.model import TrialModel, fit_model, model_each_alone
from traindyno.figures.selection import (
    Relation,
    correct_for_selection,
    simultaneous,
    trials_to_decide,
)
from traindyno.figures.table import FigureColumn


def test_contenders_share_the_upper_end_of_an_interval() -> None:
    # one rival is 0.01 behind with an error of 0.01 (a contender), the other is clearly beaten: 2.5
    # % / 2 above
    close = comparison_of(-0.01, 0.0001, 8)
    beaten = comparison_of(-0.2, 0.0001, 8)
    interval, is_detected = simultaneous([close, beaten], close, 0.05)
    assert interval is not None
    assert log(interval.low) == pytest.approx(-0.01 - t_quantile(0.975, 8) * 0.01)
    assert log(interval.high) == pytest.approx(-0.01 + t_quantile(1 - 0.025 / 2, 8) * 0.01)
    assert not is_detected


@pytest.mark.parametrize(
    ("difference", "is_detected"), [(-0.2, True), (0.2, True), (-0.001, False), (0.001, False)]
)
def test_a_difference_is_detected_on_either_side(difference: float, is_detected: bool) -> None:
    one = comparison_of(difference, 0.0001, 8)
    _, detected = simultaneous([one], one, 0.05)
    assert detected is is_detected


def test_an_unknown_spread_detects_nothing() -> None:
    one = Comparison(ratio=exp(-0.5))
    assert simultaneous([one], one, 0.05) == (None, False)


def recommended_by(model: TrialModel) -> Recommendation:
    cells = [*model.figures.cells]
    return known(recommend(model, cells, FigureColumn.SECONDS, tolerance=0.02, significance=0.05))


def in_rounds(*cells: Sequence[float | None]) -> tuple[CellRuns, ...]:
    """Each cell's seconds per step by round; None where the trial was lost."""
    named = [make_cell(f"{index:08x}", label=str(index)) for index, _ in enumerate(cells)]
    return group_runs(make_suite(), named, completed_results(named, *cells))


@pytest.mark.parametrize("order", [1, -1])
def test_a_cell_missing_a_slow_round_is_not_the_best_for_it(order: int) -> None:
    # round 1 is 20 % slow for all; the second cell takes 3 % less in each round
    lucky: list[float | None] = [None, 1.0, 1.001, 0.999, 1.002]
    better: list[float | None] = [0.97 * 1.2, 0.9702, 0.97, 0.9699, 0.971]
    third: list[float | None] = [1.1 * 1.2, 1.1, 1.102, 1.099, 1.101]
    cells = in_rounds(*(lucky, better, third)[::order])
    recommended = recommended_by(fit_model(build_figures(cells)))
    assert recommended.best == cells[1].key
    assert all(rival.comparison.ratio < 1 for rival in recommended.rivals)
    assert {rival.relation for rival in recommended.rivals} == {Relation.BEATEN}
    assert {rival.cell_id for rival in recommended.rivals} == {
        cells[0].key,
        cells[2].key,
    }


def test_one_host_is_in_the_prediction_as_in_the_mean() -> None:
    """The prediction of the recommended cell is around its corrected mean, and no narrower than the
    mean's interval.
    """
    cells = [make_cell("00000000", label="a"), make_cell("00000001", label="b")]
    levels = [
        [level * (1 + trial * turn % 5 / 1000) for trial in range(1, 6)]
        for level, turn in ((1.0, 1), (1.0002, 2))
    ]
    results = [on_host(result, "one") for result in completed_results(cells, *levels)]
    both = group_runs(make_suite(), cells, results)
    assert both[0].host_draws == 1
    model = model_each_alone(build_figures(both))
    recommended = recommended_by(model)
    (best,) = (runs for runs in both if runs.key == recommended.best)
    plain, row = (
        build_row(best, model, None, correction)
        for correction in (None, correct_for_selection(recommended.comparisons))
    )
    assert row.seconds is not None
    assert row.seconds.interval is not None
    one_run = known(known(row.prediction).seconds)
    assert one_run.high / one_run.low > 1.1  # two hosts of 2 %, t(0.95, 3) = 2.35
    assert one_run.low <= row.seconds.interval.low <= row.seconds.interval.high <= one_run.high
    assert row.seconds.mean == known(plain.seconds).mean
    before = known(plain.prediction.seconds if plain.prediction else None)
    assert one_run.high > before.high  # the best of two looks better than it is


def test_the_best_cells_selection_does_not_cut_its_mean_off() -> None:
    """A restless rival moves the end of one run further than the quiet best cell scatters."""
    cells = in_rounds((1.0, 1.001, 0.999, 1.0005, 0.9995), (1.2, 0.9, 1.1, 0.95, 1.0))
    model = model_each_alone(build_figures(cells))
    recommended = recommended_by(model)
    (best,) = (runs for runs in cells if runs.key == recommended.best)
    correction = correct_for_selection(recommended.comparisons)
    seconds = known(build_row(best, model, None, correction).seconds)
    assert known(seconds.interval).low < 0.9995 * seconds.mean


def test_trials_on_the_same_hosts_do_not_decide_differences_of_hosts() -> None:
    far = comparison_of(-0.05, 0.0008 + 0.0001, 4)
    assert trials_to_decide([far], trials=5, tolerance=0.02) is not None
    assert trials_to_decide([replace(far, host_variance=0.0008)], trials=5, tolerance=0.02) is None
    assert (
        trials_to_decide([replace(far, host_variance=1e-5)], trials=5, tolerance=0.02) is not None
    )
    assert (
        trials_to_decide(
            [replace(far, host_variance=0.0008)], trials=5, tolerance=0.02, other_hosts=True
        )
        is not None
    )


def test_what_the_places_in_a_job_leave_open_moves_the_ends_of_one_run() -> None:
    first, second = in_rounds([1.0, 1.01, 1.02], [2.0, 2.02, 2.01])
    figures = build_figures([first, second])
    of_seconds = {
        cell: tuple(replace(trial, place=1) for trial in trials)
        for cell, trials in figures.columns[FigureColumn.SECONDS].items()
    }
    placed = replace(figures, columns={**figures.columns, FigureColumn.SECONDS: of_seconds})
    model = model_each_alone(placed)
    open_places = replace(model, places={FigureColumn.SECONDS: Range(low=-0.1, high=0.2)})
    plain, moved = (
        known(known(build_row(first, fitted).prediction).seconds) for fitted in (model, open_places)
    )
    assert log(moved.low / plain.low) == pytest.approx(-0.1)
    assert log(moved.high / plain.high) == pytest.approx(0.2)
