"""CheckQuotas: a concurrency for each lane, or a refusal with the request."""

import pytest

from tests.unit.lab_in_memory import EXECUTION
from tests.unit.planned_lab import planned
from traindyno.core.errors import SuiteRefused
from traindyno.lab.plan_round import plan_next_round


def test_a_too_small_quota_is_refused_with_the_request_raising_it() -> None:
    with pytest.raises(SuiteRefused) as caught:
        planned(0)
    text = str(caught.value)
    assert "needs 1 of quota" in text
    assert (
        "aws service-quotas request-service-quota-increase --service-code sagemaker --quota-code L-"
        in text
    )


def test_a_lane_gets_the_concurrency_of_the_quota() -> None:
    lab = planned(3, measurement={"trials": 2, "jobs": "separate"})
    answer = plan_next_round(EXECUTION, finished_rounds=0, bucket=lab.bucket)
    (lane,) = answer["lanes"]
    assert (answer["execution_id"], answer["round"], lane["packs"][0]["concurrency"]) == (
        EXECUTION,
        1,
        3,
    )
    assert answer["lanes_at_once"] == 1
