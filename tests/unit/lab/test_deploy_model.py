from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from tests.unit.lab_in_memory import NOW
from tests.unit.serving_in_memory import DEPLOYMENT, NAME, SAVED_MODEL, SETTINGS, MemoryServing
from traindyno.aws.endpoints import DeploymentRefused
from traindyno.core.errors import Throttled
from traindyno.core.s3_keys import check_requests_key, served_model_key
from traindyno.core.serving.deployment import Hosting, ModelDeployment, check_job_name
from traindyno.core.serving.deployment_document import deployment_document
from traindyno.lab.serving.deploy_model import deploy_model
from traindyno.sagemaker.job_settings import LabJobs
from traindyno.store.model_deployments import DeploymentStatus


def deploy(
    serving: MemoryServing, deployment: ModelDeployment = DEPLOYMENT, token: str = "t", **changes: Any
) -> str | None:
    document = {**deployment_document(deployment), **changes}
    return deploy_model(document, token, services=serving.services, settings=SETTINGS, now=NOW)


def test_an_endpoint_is_created_from_a_copy_of_the_model_and_the_task_waits() -> None:
    serving = MemoryServing()
    assert deploy(serving) is None
    assert [kind for kind, _ in serving.endpoints.requests] == ["model", "endpoint-config", "endpoint"]
    assert serving.objects.contents[served_model_key(NAME)] == b"the model"
    assert serving.answers.given == []
    row = serving.deployments.find(NAME)
    assert row is not None
    assert (row.deployment, row.status, row.token) == (DEPLOYMENT, DeploymentStatus.CREATING, "t")


def test_a_transform_job_waits_until_a_job_over_the_evaluation_samples_is_checked() -> None:
    serving = MemoryServing()
    transform = replace(
        DEPLOYMENT, hosting=Hosting.TRANSFORM, expires_at=None, input_s3_uri="s3://results/data/x/", instance_count=3
    )
    assert deploy(serving, transform, token="check") is None
    assert [kind for kind, _ in serving.endpoints.requests] == ["model", "transform-job"]
    asked = serving.objects.contents[check_requests_key(NAME)]
    assert asked == b'{"inputs": "a good film"}\n{"inputs": "a bad film"}\n'
    check = serving.endpoints.requests[1][1]
    source = check["TransformInput"]["DataSource"]["S3DataSource"]["S3Uri"]
    assert (check["TransformJobName"], source) == (check_job_name(NAME), f"s3://results/{check_requests_key(NAME)}")
    assert (check["ModelName"], check["TransformResources"]["InstanceCount"]) == (NAME, 1)

    serving.deployments.record_check(NAME, now=NOW, checked_samples=2, latency=None)
    assert deploy(serving, transform, token="run") is None
    kind, request = serving.endpoints.requests[-1]
    assert (len(serving.endpoints.requests), kind, request["TransformJobName"]) == (3, "transform-job", NAME)
    assert request["TransformInput"]["DataSource"]["S3DataSource"]["S3Uri"] == "s3://results/data/x/"
    assert request["TransformResources"]["InstanceCount"] == 3
    row = serving.deployments.find(NAME)
    assert row is not None
    assert row.token == "run"


def test_a_repeated_call_takes_the_new_token_and_creates_no_second_row() -> None:
    serving = MemoryServing()
    deploy(serving, token="first")
    deploy(serving, token="second")
    row = serving.deployments.find(NAME)
    assert row is not None
    assert row.token == "second"
    assert len(serving.table.items) == 1


def test_a_model_that_is_gone_fails_the_task_with_what_to_do() -> None:
    serving = MemoryServing()
    del serving.objects.contents[SAVED_MODEL]
    assert deploy(serving) == "ModelNotServable"
    ((_, name, cause),) = serving.answers.given
    assert name == "ModelNotServable"
    assert f"s3://results/{SAVED_MODEL}" in cause
    row = serving.deployments.find(NAME)
    assert row is not None
    assert (row.status, row.message) == (DeploymentStatus.FAILED, cause)
    assert serving.endpoints.requests == []


def test_an_isolated_lab_refuses_before_it_copies_or_creates_anything() -> None:
    serving = MemoryServing()
    before = dict(serving.objects.contents)
    isolated = replace(SETTINGS, jobs=LabJobs(isolates_network=True))
    document = deployment_document(DEPLOYMENT)
    assert deploy_model(document, "t", services=serving.services, settings=isolated, now=NOW) == "ModelNotServable"
    assert "isolate_network=on" in serving.answers.given[0][2]
    assert (serving.objects.contents, serving.endpoints.requests) == (before, [])


def test_throttling_leaves_the_deployment_open() -> None:
    serving = MemoryServing()
    serving.endpoints.refusals = [Throttled("slow down")]
    assert deploy(serving) == "Throttled"
    row = serving.deployments.find(NAME)
    assert row is not None
    assert row.status is DeploymentStatus.CREATING
    assert deploy(serving, token="again") is None


def test_refusal_of_sagemaker_ends_the_deployment() -> None:
    serving = MemoryServing()
    serving.endpoints.refusals = [DeploymentRefused("SageMaker refused the model: limit")]
    assert deploy(serving) == "DeploymentRefused"
    row = serving.deployments.find(NAME)
    assert row is not None
    assert row.status is DeploymentStatus.FAILED


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"name": "other--x"}, "begins with traindyno--"),
        ({"name": "traindyno--" + "x" * 47}, "a name of up to 57 letters"),
        ({"name": "traindyno--x-check"}, "expected a name without -check at its end"),
        ({"owner": "a|b"}, 'owner: got "a|b", expected 1 to 256 letters'),
        (
            {"instance_type": "c5.xlarge"},
            'instance_type: got "c5.xlarge", expected an instance type such as ml.c5.xlarge',
        ),
        ({"hosting": "transform"}, "input_s3_uri: got nothing, expected the S3 prefix"),
        ({"hosting": "serverless"}, "memory_mib: got nothing, expected one of 1024"),
        ({"task": "script"}, "task: got script, expected one of causal-lm, masked-lm, sequence-classification"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_a_document_from_the_console_is_checked(change: dict[str, Any], problem: str) -> None:
    serving = MemoryServing()
    assert deploy(serving, **change) == "DocumentInvalid"
    ((_, _, cause),) = serving.answers.given
    assert problem in cause
    assert serving.table.items == {}


def test_costs_run_from_creation_to_removal() -> None:
    serving = MemoryServing()
    deploy(serving, replace(DEPLOYMENT, instance_count=2))
    row = serving.deployments.find(NAME)
    assert row is not None
    # half an hour × 2 instances × $0.204
    assert row.cost_so_far_usd(NOW + 1800) == pytest.approx(Decimal("0.204"))
    serving.deployments.remove(NAME, now=NOW + 3600)
    removed = serving.deployments.find(NAME)
    assert removed is not None
    assert removed.cost_so_far_usd(NOW + 999_999) == pytest.approx(Decimal("0.408"))
