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
from traindyno.core.serving.deployment import ModelDeployment
from traindyno.lab.environment import BucketEnvironment
from traindyno.lab.serving.deploy_model import deploy_model
from traindyno.lab.serving.end_endpoints import open_serving
from traindyno.sagemaker.job_settings import LabJobs
from traindyno.sagemaker.serving import ServingSettings

pytestmark = pytest.mark.local

LAB, BUCKET, TABLE = "serving", "serving-results", "serving-rows"
HANDLER = "def model_fn(folder): return None"
DUE = ModelDeployment(
    name="serving--answers",
    created_at=0,
    hours=1,
    execution_id="e1",
    run_id="answers",
    job_name="job",
    owner="ada",
    instance_type="local.cpu",
)
LEFT = replace(DUE, name="serving--left", hours=9)


@pytest.fixture(scope="module")
def sent(lab: LocalLab) -> frozenset[Call]:
    machine = "arn:aws:states:us-east-1:000000000000:stateMachine:serving-suites"
    functions = Lambdas(LAB=LAB, BUCKET=BUCKET, TABLE=TABLE, STATE_MACHINE_ARN=machine)
    with as_if_in(environment_of(lab.home)):
        boto3.client("s3").create_bucket(Bucket=BUCKET)
        make_table(TABLE)
        saved = saved_model_key(DUE.execution_id, DUE.run_id, DUE.job_name)
        boto3.client("s3").put_object(Bucket=BUCKET, Key=saved, Body=tar_gz({"code/inference.py": HANDLER}))
        go_through_everything(functions)
    return read_calls(lab.folder / CALLS_FILE, lab=LAB)


def go_through_everything(functions: Lambdas) -> None:
    """An endpoint that the sweep ends, and one that goes with its lab."""
    sagemaker, role = boto3.client("sagemaker"), "arn:aws:iam::000000000000:role/serving"
    settings = ServingSettings(region="us-east-1", role_arn=role, bucket=BUCKET, lab=LAB, jobs=LabJobs())
    serving = open_serving(BucketEnvironment(lab=LAB, bucket=BUCKET, table=TABLE))
    began = time.time() - 3600
    for deployment in (DUE, LEFT):
        deploy_model(replace(deployment, created_at=began), serving, settings, clock=lambda: began)
        waiter = partial(sagemaker.describe_endpoint, EndpointName=deployment.name)
        eventually(lambda waiter=waiter: waiter()["EndpointStatus"] == "InService", seconds=60)
    functions.call("reconcile_runs", {})
    left = sagemaker.list_endpoints(NameContains=f"{LAB}--")["Endpoints"]
    assert [each["EndpointName"] for each in left] == [LEFT.name]
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


SENT_HERE = {"guard_lab": "", "reconcile_runs": "Endpoint|DeleteModel|models/|ListTags"}


@pytest.mark.parametrize("function", SENT_HERE)
def test_every_call_of_the_record_is_still_sent(sent: frozenset[Call], function: str) -> None:
    recorded = {call for call in recorded_calls() if call.function == function}
    assert {call for call in recorded - UNSENT.keys() if re.search(SENT_HERE[function], str(call))} - sent == set()
