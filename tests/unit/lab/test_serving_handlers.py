"""The handlers of deployments: what they read from the environment and the event, and what they hand on."""

import json
import time
from types import ModuleType
from typing import Any

import pytest

from lambdas.check_endpoint import handler as check_endpoint
from lambdas.deploy_model import handler as deploy_model
from lambdas.finish_deployment import handler as finish_deployment
from lambdas.reconcile_endpoints import handler as reconcile_endpoints
from lambdas.remove_endpoint import handler as remove_endpoint
from tests.unit.lab_in_memory import NOW
from tests.unit.serving_in_memory import DEPLOYMENT, NAME, READY, MemoryServing
from traindyno.core.serving.deployment_document import deployment_document
from traindyno.lab.environment import BucketEnvironment

HANDLERS: tuple[ModuleType, ...] = (
    check_endpoint, deploy_model, finish_deployment, reconcile_endpoints, remove_endpoint,
)  # fmt: skip


@pytest.fixture
def serving(monkeypatch: pytest.MonkeyPatch) -> MemoryServing:
    serving = MemoryServing()
    settings = {
        **{"LAB": "traindyno", "BUCKET": "results", "TABLE": "rows", "AWS_REGION": "us-east-1"},
        "SERVING_ROLE_ARN": "arn:aws:iam::111111111111:role/serving",
        "LAB_JOBS": json.dumps({"tags": {"team": "vision"}}),
    }
    for name, value in settings.items():
        monkeypatch.setenv(name, value)

    def connect(environment: BucketEnvironment) -> MemoryServing:
        assert (environment.table, environment.bucket) == ("rows", "results")
        return serving

    for module in HANDLERS:
        monkeypatch.setattr(module, "connect", connect)
    monkeypatch.setattr(time, "time", lambda: NOW)
    return serving


def deployed(serving: MemoryServing) -> dict[str, Any]:
    document = deployment_document(DEPLOYMENT)
    deploy_model.handle({"token": "t", "deployment": document}, None)
    serving.endpoints.hosted[NAME] = READY
    return document


def test_a_deployment_goes_from_its_creation_to_its_check(serving: MemoryServing) -> None:
    document = deployed(serving)
    model = serving.endpoints.requests[0][1]
    assert model["ExecutionRoleArn"] == "arn:aws:iam::111111111111:role/serving"
    assert {"Key": "team", "Value": "vision"} in model["Tags"]
    finish_deployment.handle({"detail": {"EndpointName": NAME, "EndpointStatus": "IN_SERVICE"}}, None)
    assert [kind for _, kind, _ in serving.answers.given] == ["success"]
    assert check_endpoint.handle(document, None) == {}
    row = serving.deployments.find(NAME)
    assert row is not None
    assert row.checked_samples == 2


def test_a_wrong_answer_is_a_refusal_with_its_class(serving: MemoryServing) -> None:
    document = deployed(serving)
    serving.invocations.wrong = {"good"}
    refused = check_endpoint.handle(document, None)["refused"]
    assert refused["Error"] == "AnswersDiffer"
    assert "expected 'good' with probability 0.900" in refused["Cause"]


def test_failed_deployment_is_removed_with_its_cause(serving: MemoryServing) -> None:
    deployed(serving)
    remove_endpoint.handle({"name": NAME, "failure": {"Error": "AnswersDiffer", "Cause": "the answers differ"}}, None)
    row = serving.deployments.find(NAME)
    assert row is not None
    assert (row.removed_at, row.message) == (NOW, "the answers differ")


def test_the_sweep_counts_open_and_overdue_endpoints(
    serving: MemoryServing, capsys: pytest.CaptureFixture[str]
) -> None:
    deployed(serving)
    reconcile_endpoints.handle({}, None)
    line = json.loads(capsys.readouterr().out)
    assert (line["Lab"], line["OpenEndpoints"], line["OverdueEndpoints"]) == ("traindyno", 1, 0)
