"""The roles of deployments hold what their handlers ask for, and nothing more, by the calls in the local cloud."""

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import boto3
import pytest

from localcloud.cloud import require_ports
from localcloud.environment import local_environment
from tests.archives import tar_gz
from tests.infra.synthesis import as_list
from tests.infra.synthesis import lab as synthesised
from tests.local.local_lab import LocalLab
from tests.local.recorded_calls import Recorder, recording
from tests.local.test_permissions import BROUGHT_ALONG, OWN_LOG
from traindyno.aws import clients
from traindyno.aws.table import Table
from traindyno.core.s3_keys import samples_key, saved_model_key
from traindyno.core.serving.deployment import Hosting, ModelDeployment, deployment_document
from traindyno.core.serving.samples import EvaluationSample, EvaluationSamples, Prediction, samples_document
from traindyno.core.suite.choices import Task
from traindyno.store.model_deployments import DeploymentRows

pytestmark = pytest.mark.local

LAB, BUCKET, TABLE = "serving", "serving-results", "serving-rows"
HANDLER = """
def model_fn(folder):
    print("loading", flush=True)
    {at_load}
def input_fn(body, content_type):
    return body
def predict_fn(data, model):
    return data
def output_fn(made, accept):
    return '{"predictions": [{"label": "good", "score": 1.0}]}'
"""
DEPLOYMENT = ModelDeployment(
    name="serving--answers",
    hosting=Hosting.ENDPOINT,
    suite_name="s",
    execution_id="e1",
    cell_id="c1",
    run_id="answers",
    job_name="job",
    task=Task.SEQUENCE_CLASSIFICATION,
    owner="ada",
    instance_type="local.cpu",
)
FAILING = replace(DEPLOYMENT, name="serving--fails", run_id="fails")
CHECK = "serving--batch-check"
TRANSFORM = replace(DEPLOYMENT, name="serving--batch", hosting=Hosting.TRANSFORM, input_s3_uri=f"s3://{BUCKET}/data/x/")
# A copy in parts is begun for large models only, and given up only where it fails. Which of the two kinds of
# deployment, and which answer, a call is about is decided by the deployment.
ELSEWHERE = {
    "DeployModel": {"s3:AbortMultipartUpload", "states:SendTaskSuccess", "states:SendTaskFailure"},
    "ReconcileEndpoints": {"sagemaker:DescribeTransformJob", "sagemaker:StopTransformJob"},
}
CREATED = {"sagemaker:CreateModel": {"sagemaker:AddTags", "iam:PassRole"}}


@pytest.fixture(scope="module")
def recorder(lab: LocalLab) -> Iterator[Recorder]:
    environment = {
        **local_environment(require_ports(lab.home)),
        **{"LAB": LAB, "BUCKET": BUCKET, "TABLE": TABLE},
        "SERVING_ROLE_ARN": "arn:aws:iam::000000000000:role/serving",
    }
    with recording(environment) as recorder:
        make_storage()
        go_through_everything(recorder)
        yield recorder


def make_storage() -> None:
    boto3.client("s3").create_bucket(Bucket=BUCKET)
    boto3.client("dynamodb").create_table(
        TableName=TABLE,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk")],
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
    )
    put_model(DEPLOYMENT, "pass")
    put_model(FAILING, 'raise RuntimeError("no weights")')
    samples = EvaluationSamples(
        task=DEPLOYMENT.task,
        samples=(EvaluationSample(inputs="a film", predictions=(Prediction(label="good", score=1.0),)),),
    )
    key = samples_key(DEPLOYMENT.execution_id, DEPLOYMENT.run_id, DEPLOYMENT.job_name)
    put(key, json.dumps(samples_document(samples)).encode())
    put("data/x/requests.jsonl", b'{"inputs": "a"}\n')


def put(key: str, content: bytes) -> None:
    boto3.client("s3").put_object(Bucket=BUCKET, Key=key, Body=content)


def put_model(deployment: ModelDeployment, at_load: str) -> None:
    key = saved_model_key(deployment.execution_id, deployment.run_id, deployment.job_name)
    put(key, tar_gz({"code/inference.py": HANDLER.replace("{at_load}", at_load)}))


def go_through_everything(recorder: Recorder) -> None:
    """An endpoint that answers and expires, one that fails, and a transform job."""
    for deployment in (DEPLOYMENT, FAILING, TRANSFORM):
        recorder.call("deploy_model", {"token": "nobody", "deployment": deployment_document(deployment)})
    # A task that was started again, and a document that is wrong
    recorder.call("deploy_model", {"token": "nobody", "deployment": deployment_document(DEPLOYMENT)})
    recorder.call("deploy_model", {"token": "nobody", "deployment": {"name": "wrong"}})
    sagemaker = boto3.client("sagemaker")
    wait_for(lambda: sagemaker.describe_endpoint(EndpointName=DEPLOYMENT.name)["EndpointStatus"] == "InService")
    wait_for(lambda: sagemaker.describe_endpoint(EndpointName=FAILING.name)["EndpointStatus"] == "Failed")
    wait_for(lambda: sagemaker.describe_transform_job(TransformJobName=CHECK)["TransformJobStatus"] == "Completed")
    recorder.call("finish_deployment", {"detail": {"TransformJobName": CHECK}})
    for deployment in (DEPLOYMENT, TRANSFORM):
        assert recorder.call("check_endpoint", deployment_document(deployment)) == {}
    recorder.call("deploy_model", {"token": "nobody", "deployment": deployment_document(TRANSFORM)})
    wait_for(
        lambda: sagemaker.describe_transform_job(TransformJobName=TRANSFORM.name)["TransformJobStatus"] == "Completed"
    )
    change(DEPLOYMENT.name, "deployment.expires_at = :then", {":then": 1})
    change(FAILING.name, "created_at = :then", {":then": 1})
    recorder.call("reconcile_endpoints", {})
    for deployment in (FAILING, TRANSFORM):
        key = "EndpointName" if deployment.is_endpoint else "TransformJobName"
        recorder.call("finish_deployment", {"detail": {key: deployment.name}})
        change(deployment.name, "#status = :creating", {":creating": "creating"}, {"#status": "status"})
        recorder.call("finish_deployment", {"detail": {key: deployment.name}})
        recorder.call("remove_endpoint", {"name": deployment.name})
    rows = {row.deployment.name: row for row in DeploymentRows(Table(clients.table(TABLE))).list_all()}
    assert {row.status for row in rows.values()} == {"removed"}
    assert "RuntimeError: no weights" in (rows[FAILING.name].message or "")


def change(name: str, assignment: str, values: dict[str, Any], names: dict[str, str] | None = None) -> None:
    key = {"pk": "model-deployments", "sk": f"deployment#{name}"}
    assert Table(clients.table(TABLE)).update(key, f"SET {assignment}", values=values, names=names)


def wait_for(is_true: Any) -> None:
    deadline = time.monotonic() + 60
    while not is_true():
        assert time.monotonic() < deadline, "not so within a minute"
        time.sleep(0.1)


STATES = ("DeployModel", "FinishDeployment", "CheckEndpoint", "RemoveEndpoint", "ReconcileEndpoints")


@pytest.mark.parametrize("state", STATES)
def test_a_role_holds_what_its_handler_asks_for_and_nothing_more(recorder: Recorder, state: str) -> None:
    folder = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in state).lstrip("_")
    asked = recorder.actions[folder]
    assert asked
    brought = BROUGHT_ALONG | CREATED
    needed = asked.union(ELSEWHERE.get(state, set()), *(brought.get(action, set()) for action in asked))
    statements = synthesised(target="aws").statements(f"ServingFunctions{state}Role")
    held = {action for statement in statements for action in as_list(statement["Action"])} - OWN_LOG
    assert held == needed
