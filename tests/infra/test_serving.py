"""The state machine that deploys trained models."""

from typing import Any

import pytest

from tests.infra.synthesis import lab
from traindyno.core.errors import ServiceFault, Throttled


@pytest.fixture(scope="module")
def states() -> dict[str, Any]:
    return dict(lab(target="aws").definition("deployments")["States"])


def test_an_endpoint_is_created_then_checked_then_in_service(states: dict[str, Any]) -> None:
    assert states["DeployModel"]["Next"] == "CheckEndpoint"
    assert states["DeployModel"]["Resource"].endswith(":lambda:invoke.waitForTaskToken")
    assert states["CheckEndpoint"]["Next"] == "Answered"
    assert states["Answered"]["Default"] == "InService"
    assert states["InService"]["Type"] == "Succeed"


def test_a_transform_job_runs_after_its_check_and_leaves_no_model(states: dict[str, Any]) -> None:
    refused, transform = states["Answered"]["Choices"]
    assert refused["Variable"] == "$.checked.refused"
    assert (transform["Variable"], transform["StringEquals"]) == ("$.hosting", "transform")
    assert transform["Next"] == "RunTransform"
    assert states["RunTransform"]["Resource"].endswith(":lambda:invoke.waitForTaskToken")
    # The state's own input holds the check's answer too, which is no part of a deployment.
    assert states["RunTransform"]["Parameters"]["Payload"]["deployment.$"] == "$$.Execution.Input"
    assert states["RunTransform"]["Next"] == "RemoveModel"
    assert states["RemoveModel"]["End"]


def test_failed_deployment_is_deleted(states: dict[str, Any]) -> None:
    for name in ("DeployModel", "CheckEndpoint", "RunTransform"):
        (catch,) = states[name]["Catch"]
        assert (catch["ErrorEquals"], catch["Next"], catch["ResultPath"]) == (
            ["States.ALL"], "RemoveEndpoint", "$.failure",
        )  # fmt: skip
    refused, _ = states["Answered"]["Choices"]
    assert (refused["Variable"], refused["Next"]) == ("$.checked.refused", "AnswersRefused")
    assert (states["AnswersRefused"]["ResultPath"], states["AnswersRefused"]["Next"]) == (
        "$.failure", "RemoveEndpoint",
    )  # fmt: skip
    assert states["RemoveEndpoint"]["Next"] == "NotDeployed"
    assert (states["NotDeployed"]["ErrorPath"], states["NotDeployed"]["CausePath"]) == (
        "$.failure.Error", "$.failure.Cause",
    )  # fmt: skip


def test_faults_and_throttling_are_tried_again_and_refusals_are_not(states: dict[str, Any]) -> None:
    for name in ("DeployModel", "RunTransform"):
        retried = {error for rule in states[name]["Retry"] for error in rule["ErrorEquals"]}
        assert {Throttled.__name__, ServiceFault.__name__} <= retried
        assert not {"DeploymentRefused", "ModelNotServable", "DeploymentFailed", "States.ALL"} & retried
        assert states[name]["TimeoutSeconds"] == 5 * 86_400
