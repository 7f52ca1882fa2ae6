import pytest

from tests.unit.run_samples import completed_result, make_cell
from tests.unit.step_log_samples import START
from traindyno.core.costs.to_target import LearningPoint, evaluation_curve, training_curve
from traindyno.core.step_log.line import evaluation_line
from traindyno.core.suite.choices import Quality


def test_losses_and_evaluations_know_their_time_and_money() -> None:
    after = [evaluation_line(START + 30, 20, {"accuracy": 0.7}), evaluation_line(START + 50, 40, {"loss": 2.0})]
    result = completed_result(make_cell(), 1, after=after)
    # 80 s before training, 20 s of them downloading and billed; $36/h are one cent a second
    (point,) = evaluation_curve(result, Quality.ACCURACY)
    assert point == LearningPoint(step=20, seconds=110.0, usd=0.5, value=0.7)
    second = training_curve(result)[1]
    assert (second.step, second.seconds) == (1, 91.0)
    assert second.usd == pytest.approx(0.31)
