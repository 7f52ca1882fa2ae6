import pytest

from tests.unit.run_samples import completed_result, make_cell
from traindyno.core.measurement.loss_curve import LossCurve, LossPoint
from traindyno.core.verdict.report_data import downsample_loss, shown_results


def test_a_thinned_curve_weighs_by_steps() -> None:
    points = (
        LossPoint(step=2, samples=16, steps=3, loss=4.0, seconds=2.0),
        LossPoint(step=3, samples=24, steps=1, loss=2.0, seconds=3.0),
        *(
            LossPoint(step=4 + index, samples=32 + index, steps=1, loss=1.0, seconds=4.0 + index)
            for index in range(10)
        ),
    )
    thin = downsample_loss(LossCurve(points=points, last=1.0, diverged_at_step=None), 10)
    # (3 x 4 + 1 x 2) / 4
    assert thin.points[0] == LossPoint(step=3, samples=24, steps=4, loss=3.5, seconds=3.0)
    assert len(thin.points) == 6


def test_too_few_points_to_show_anything_are_none() -> None:
    point = LossPoint(step=2, samples=16, steps=3, loss=4.0, seconds=2.0)
    curve = LossCurve(points=(point,) * 50, last=1.0, diverged_at_step=None)
    assert downsample_loss(curve, 9).points == ()


def test_few_runs_keep_all_points_and_many_share_them() -> None:
    result = completed_result(make_cell(), 1)
    (kept,) = shown_results((), [result])
    assert kept.measured is not None
    assert result.measured is not None
    # to five digits: 3.97 stays, 70.000000001 is 70
    for point, whole in zip(kept.measured.loss.points, result.measured.loss.points, strict=True):
        assert point.loss == pytest.approx(whole.loss, rel=1e-4)
        assert len(f"{point.seconds}") <= 7
    many = shown_results((), [result] * 2500)
    assert many[0].measured is not None
    assert many[0].measured.loss.points == ()
    assert many[0].samples_per_second == pytest.approx(8.0)
