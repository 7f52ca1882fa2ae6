from math import inf, isnan, nan

import pytest

from tests.unit.run_samples import step_log_of
from traindyno.core.measurement.loss_curve import MOST_POINTS, LossCurve, draw_loss_curve
from traindyno.core.step_log.step_table import tabulate_steps


def curve_of(*losses: float | None) -> LossCurve:
    session = step_log_of([1.0] * len(losses), loss=lambda index: losses[index]).measured
    assert session is not None
    return draw_loss_curve(tabulate_steps(session), began_at=session.begin)


def test_points_know_when_they_were_reached() -> None:
    # one second a step; the log begins with the first
    assert [point.seconds for point in curve_of(4.0, 3.0).points] == [1.0, 2.0]


@pytest.mark.parametrize("broken", [nan, inf, -inf])
def test_non_finite_points_stay_in_the_curve(broken: float) -> None:
    curve = curve_of(4.0, 3.0, broken, broken)
    assert [point.step for point in curve.points] == [0, 1, 2, 3]
    assert [isnan(point.loss) for point in curve.points] == [False, False, True, True]
    assert [point.loss for point in curve.finite_points] == [4.0, 3.0]
    assert (curve.last, curve.diverged_at_step) == (3.0, 2)


def test_one_non_finite_loss_marks_the_point_of_many_steps() -> None:
    losses = [1.0] * (2 * MOST_POINTS)
    losses[101] = nan
    curve = curve_of(*losses)
    assert [index for index, point in enumerate(curve.points) if isnan(point.loss)] == [50]


def test_a_curve_has_at_most_200_points() -> None:
    assert len(curve_of(*[1.0] * 200).points) == 200
    # two steps in a point
    assert len(curve_of(*[1.0] * 201).points) == 101


def test_steps_without_a_loss_have_no_point() -> None:
    assert [point.step for point in curve_of(None, 2.0, None).points] == [1]
