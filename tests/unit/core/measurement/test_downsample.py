import pytest

from tests.unit.run_samples import completed_result, make_cell
from traindyno.core.measurement.loss_curve import LossCurve, LossPoint
from traindyno.core.measurement.measured_run import StepTimeline
from traindyno.core.verdict.report_data import downsample_loss, downsample_timeline, shown_results


def test_a_thinned_timeline_keeps_the_mean_of_what_it_joins() -> None:
    timeline = StepTimeline(
        first_step=0, stride=1, seconds=tuple(float(step) for step in range(25))
    )
    thin = downsample_timeline(timeline, 10)
    # 25 steps in at most 10 points: three each, the last alone
    assert thin.stride == 3
    assert thin.seconds == (1.0, 4.0, 7.0, 10.0, 13.0, 16.0, 19.0, 22.0, 24.0)


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
    timeline = StepTimeline(first_step=0, stride=1, seconds=(1.0,) * 50)
    assert downsample_timeline(timeline, 9).seconds == ()


def test_few_runs_keep_all_points_and_many_share_them() -> None:
    result = completed_result(make_cell(), 1)
    (kept,) = shown_results((), [result])
    assert kept.measured is not None
    assert result.measured is not None
    assert len(kept.measured.timeline.seconds) == len(result.measured.timeline.seconds)
    # to five digits: 3.97 stays, 70.000000001 is 70
    for point, whole in zip(kept.measured.loss.points, result.measured.loss.points, strict=True):
        assert point.loss == pytest.approx(whole.loss, rel=1e-4)
        assert len(f"{point.seconds}") <= 7
    many = shown_results((), [result] * 2500)
    assert many[0].measured is not None
    assert 10 <= len(many[0].measured.timeline.seconds) <= 15
    assert many[0].measured.loss.points == ()
    assert many[0].samples_per_second == pytest.approx(8.0)
