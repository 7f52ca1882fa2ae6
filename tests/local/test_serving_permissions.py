"""Runs the functions of deployments and the guard on each of their ways: the record has their calls and no others."""

import json
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import boto3
import pytest

from localcloud.cloud import environment_of
from tests.archives import tar_gz
from tests.local.jobs import eventually
from tests.local.local_lab import LocalLab
from tests.local.recorded_calls import CALLS_FILE, Lambdas, as_if_in, make_table
from tests.permissions.calls import Call, read_calls, recorded_calls
from tests.permissions.unsent import UNSENT
from traindyno.core.s3_keys import saved_model_key
from traindyno.core.serving.deployment import ModelDeployment, deployment_document
from traindyno.core.suite.choices import Task

pytestmark = pytest.mark.local

LAB, BUCKET, TABLE = "serving", "serving-results", "serving-rows"
HANDLER = "def model_fn(folder): return None"
DEPLOYMENT = ModelDeployment(
    name="serving--answers",
    created_at=0,
    hours=1,
    suite_name="s",
    execution_id="e1",
    run_id="answers",
    job_name="job",
    task=Task.SEQUENCE_CLASSIFICATION,
    owner="ada",
    instance_type="local.cpu",
)
LEFT = replace(DEPLOYMENT, name="serving--left", hours=9)
DUE = replace(DEPLOYMENT, hours=0.01)


@pytest.fixture(scope="module")
def sent(lab: LocalLab) -> frozenset[Call]:
    functions = Lambdas(
        LAB=LAB,
        BUCKET=BUCKET,
        TABLE=TABLE,
        SERVING_ROLE_ARN="arn:aws:iam::000000000000:role/serving",
        STATE_MACHINE_ARN="arn:aws:states:us-east-1:000000000000:stateMachine:serving-suites",
    )
    with as_if_in(environment_of(lab.home)):
        make_storage()
        go_through_everything(functions)
    return read_calls(lab.folder / CALLS_FILE, lab=LAB)


def make_storage() -> None:
    boto3.client("s3").create_bucket(Bucket=BUCKET)
    make_table(TABLE)
    key = saved_model_key(DEPLOYMENT.execution_id, DEPLOYMENT.run_id, DEPLOYMENT.job_name)
    boto3.client("s3").put_object(Bucket=BUCKET, Key=key, Body=tar_gz({"code/inference.py": HANDLER}))


def go_through_everything(functions: Lambdas) -> None:
    """An endpoint that the sweep ends, and one that goes with its lab."""
    sagemaker = boto3.client("sagemaker")
    for deployment in (DUE, LEFT):
        document = deployment_document(deployment)
        assert functions.call("deploy_model", document) == functions.call("deploy_model", document) == {}
        waiter = partial(sagemaker.describe_endpoint, EndpointName=deployment.name)
        eventually(lambda waiter=waiter: waiter()["EndpointStatus"] == "InService", seconds=60)
    assert (
        "expected a name" in functions.call("deploy_model", {**deployment_document(LEFT), "name": "wrong"})["refused"]
    )
    time.sleep(40)  # until DUE is due
    functions.call("reconcile_runs", {})
    assert [each["EndpointName"] for each in sagemaker.list_endpoints(NameContains=f"{LAB}--")["Endpoints"]] == [
        LEFT.name
    ]
    with answers_to_cloudformation() as (url, answers):
        names = {"LogicalResourceId": "Guard", "StackId": "stack", "RequestId": "request"}
        functions.call("guard_lab", {"RequestType": "Delete", "ResponseURL": url, **names})
    assert [answer["Status"] for answer in answers] == ["SUCCESS"], answers
    assert not sagemaker.list_endpoints(NameContains=f"{LAB}--")["Endpoints"]
    assert "Contents" not in boto3.client("s3").list_objects_v2(Bucket=BUCKET, Prefix="models/")


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


SENT_HERE = {
    "deploy_model": "",
    "guard_lab": "",
    "reconcile_runs": "Endpoint|DeleteModel|models/|ListTags",
}


@pytest.mark.parametrize("function", SENT_HERE)
def test_every_call_of_the_record_is_still_sent(sent: frozenset[Call], function: str) -> None:
    recorded = {call for call in recorded_calls() if call.function == function}
    assert {call for call in recorded - UNSENT.keys() if re.search(SENT_HERE[function], str(call))} - sent == set()
