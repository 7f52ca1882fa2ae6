"""Runs the functions of deployments and the guard on each of their ways: the record has their calls and no others."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import boto3
import pytest

from localcloud.cloud import environment_of
from tests.archives import tar_gz
from tests.local.local_lab import LocalLab
from tests.local.recorded_calls import CALLS_FILE, Lambdas, as_if_in, make_table
from tests.permissions.calls import Call, read_calls, recorded_calls
from traindyno.aws import clients
from traindyno.aws.table import Table
from traindyno.core.s3_keys import samples_key, saved_model_key
from traindyno.core.serving.deployment import Hosting, ModelDeployment
from traindyno.core.serving.deployment_document import deployment_document
from traindyno.core.serving.samples import EvaluationSample, EvaluationSamples, ScoredLabel, samples_document
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
LATE = replace(TRANSFORM, name="serving--late", expires_at=9_999_999_999)
LEFT = (
    replace(DEPLOYMENT, name="serving--left", expires_at=9_999_999_999),
    replace(TRANSFORM, name="serving--left-batch"),
)
MACHINES = "arn:aws:states:us-east-1:000000000000:stateMachine"


@pytest.fixture(scope="module")
def sent(lab: LocalLab) -> frozenset[Call]:
    functions = Lambdas(
        LAB=LAB,
        BUCKET=BUCKET,
        TABLE=TABLE,
        SERVING_ROLE_ARN="arn:aws:iam::000000000000:role/serving",
        STATE_MACHINE_ARN=f"{MACHINES}:serving-suites",
        DEPLOYMENTS_ARN=f"{MACHINES}:serving-deployments",
    )
    with as_if_in(environment_of(lab.home)):
        make_storage()
        go_through_everything(functions)
    return read_calls(lab.folder / CALLS_FILE, lab=LAB)


def make_storage() -> None:
    boto3.client("s3").create_bucket(Bucket=BUCKET)
    make_table(TABLE)
    put_model(DEPLOYMENT, "pass")
    put_model(FAILING, 'raise RuntimeError("no weights")')
    samples = EvaluationSamples(
        task=DEPLOYMENT.task,
        samples=(EvaluationSample(inputs="a film", predictions=(ScoredLabel(label="good", score=1.0),)),),
    )
    key = samples_key(DEPLOYMENT.execution_id, DEPLOYMENT.run_id, DEPLOYMENT.job_name)
    put(key, json.dumps(samples_document(samples)).encode())
    put("data/x/requests.jsonl", b'{"inputs": "a"}\n')


def put(key: str, content: bytes) -> None:
    boto3.client("s3").put_object(Bucket=BUCKET, Key=key, Body=content)


def put_model(deployment: ModelDeployment, at_load: str) -> None:
    key = saved_model_key(deployment.execution_id, deployment.run_id, deployment.job_name)
    put(key, tar_gz({"code/inference.py": HANDLER.replace("{at_load}", at_load)}))


def go_through_everything(functions: Lambdas) -> None:
    """Makes an endpoint that answers and expires, an endpoint that fails, a transform job, and one past its limit."""
    for deployment in (DEPLOYMENT, FAILING, TRANSFORM, LATE):
        functions.call("deploy_model", {"token": "nobody", "deployment": deployment_document(deployment)})
    # A task that was started again, and a document that is wrong
    functions.call("deploy_model", {"token": "nobody", "deployment": deployment_document(DEPLOYMENT)})
    functions.call("deploy_model", {"token": "nobody", "deployment": {"name": "wrong"}})
    sagemaker = boto3.client("sagemaker")
    wait_for(lambda: sagemaker.describe_endpoint(EndpointName=DEPLOYMENT.name)["EndpointStatus"] == "InService")
    wait_for(lambda: sagemaker.describe_endpoint(EndpointName=FAILING.name)["EndpointStatus"] == "Failed")
    wait_for(lambda: sagemaker.describe_transform_job(TransformJobName=CHECK)["TransformJobStatus"] == "Completed")
    functions.call("finish_deployment", {"detail": {"TransformJobName": CHECK}})
    for deployment in (DEPLOYMENT, TRANSFORM):
        assert functions.call("check_endpoint", deployment_document(deployment)) == {}
    functions.call("deploy_model", {"token": "nobody", "deployment": deployment_document(TRANSFORM)})
    wait_for(
        lambda: sagemaker.describe_transform_job(TransformJobName=TRANSFORM.name)["TransformJobStatus"] == "Completed"
    )
    for deployment in (DEPLOYMENT, LATE):
        change(deployment.name, "deployment.expires_at = :then", {":then": 1})
    quiet = {":then": int(time.time()) - 1000}
    for deployment in (FAILING, TRANSFORM):
        change(deployment.name, "created_at = :then, checked_at = :then", quiet)
    functions.call("reconcile_endpoints", {})
    for deployment in (FAILING, TRANSFORM):
        key = "EndpointName" if deployment.is_endpoint else "TransformJobName"
        functions.call("finish_deployment", {"detail": {key: deployment.name}})
        change(deployment.name, "#status = :creating", {":creating": "creating"}, {"#status": "status"})
        functions.call("finish_deployment", {"detail": {key: deployment.name}})
        functions.call("remove_endpoint", {"name": deployment.name})
    destroy(functions)
    rows = {row.deployment.name: row for row in DeploymentRows(Table(clients.table(TABLE))).list_all()}
    assert {row.status for row in rows.values()} == {"removed"}
    assert "RuntimeError: no weights" in (rows[FAILING.name].message or "")


def destroy(functions: Lambdas) -> None:
    """Deletes the lab while its endpoint and transform job exist."""
    for deployment in LEFT:
        functions.call("deploy_model", {"token": "nobody", "deployment": deployment_document(deployment)})
    with answers_to_cloudformation() as (url, answers):
        names = {"LogicalResourceId": "Guard", "StackId": "stack", "RequestId": "request"}
        functions.call("guard_lab", {"RequestType": "Delete", "ResponseURL": url, **names})
    assert [answer["Status"] for answer in answers] == ["SUCCESS"], answers


@contextmanager
def answers_to_cloudformation() -> Iterator[tuple[str, list[Any]]]:
    """A URL that takes the guard's answers, as the signed URLs of CloudFormation do."""
    answers: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            answers.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/", answers
    finally:
        server.shutdown()
        server.server_close()


def change(name: str, assignment: str, values: dict[str, Any], names: dict[str, str] | None = None) -> None:
    key = {"pk": "model-deployments", "sk": f"deployment#{name}"}
    assert Table(clients.table(TABLE)).update(key, f"SET {assignment}", values=values, names=names)


def wait_for(is_true: Any) -> None:
    deadline = time.monotonic() + 60
    while not is_true():
        assert time.monotonic() < deadline, "not so within a minute"
        time.sleep(0.1)


FUNCTIONS = (
    *("deploy_model", "finish_deployment", "check_endpoint"),
    *("remove_endpoint", "reconcile_endpoints", "guard_lab"),
)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_every_call_of_the_record_is_still_sent(sent: frozenset[Call], function: str) -> None:
    assert {call for call in recorded_calls() if call.function == function} - sent == set()
