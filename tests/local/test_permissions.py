"""Runs each function of a lab on each of its ways and compares the calls that their workers write
with the record.

``tests/infra/test_policies.py`` compares the record with the roles.
"""

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import boto3
import pytest

from localcloud.cloud import environment_of, require_ports
from tests.archives import tar_gz
from tests.local.jobs import eventually, wait_until
from tests.local.local_lab import LocalLab
from tests.local.recorded_calls import CALLS_FILE, Lambdas, as_if_in, make_table
from tests.local.running_service import administer
from tests.permissions.calls import Call, read_calls, recorded_calls
from tests.permissions.unsent import UNSENT
from tests.unit.serving_in_memory import DEPLOYMENT, SAVED_MODEL, SETTINGS
from traindyno.api.served_model import deploy_model
from traindyno.aws import clients
from traindyno.aws.log_tail import LogTail
from traindyno.aws.table import Table
from traindyno.lab.continue_suite import CONTINUES
from traindyno.lab.end_endpoints import open_serving
from traindyno.lab.environment import BucketEnvironment
from traindyno.store.executions import ExecutionRows, execution_key
from traindyno.store.owners import RunRows

pytestmark = pytest.mark.local

FUNCTIONS = (
    "plan_suite",
    "check_quotas",
    "plan_round",
    "submit_run",
    "finish_run",
    "record_run",
    "reconcile_runs",
    "stop_runs",
    "judge_suite",
    "guard_lab",
)
# Other tests of this folder send these: beside running jobs, and by preparations, further rounds,
# shared jobs, and runs that log steps.
ELSEWHERE = """
check_quotas sagemaker:DescribeTrainingJob TrainingJobName=$LAB--*
finish_run s3:GetObject Bucket=$BUCKET Object=$BUCKET/prepared/*
finish_run s3:GetObject Bucket=$BUCKET Object=$BUCKET/runs/*
finish_run s3:PutObject Object=$BUCKET/tokens/*
finish_run stepfunctions:SendTaskFailure Machine=$LAB-suites
finish_run stepfunctions:SendTaskFailure Machine=$LAB-suites/*
plan_round s3:GetObject Bucket=$BUCKET Object=$BUCKET/tokens/*
plan_round s3:ListObjectsV2 Bucket=$BUCKET
record_run s3:GetObject Bucket=$BUCKET Object=$BUCKET/runs/*
submit_run s3:GetObject Bucket=$BUCKET Object=$BUCKET/runs/*
submit_run s3:ListObjectsV2 Bucket=$BUCKET
submit_run s3:PutObject Object=$BUCKET/code/*/jobs/*
submit_run stepfunctions:SendTaskSuccess Machine=$LAB-suites
submit_run stepfunctions:SendTaskSuccess Machine=$LAB-suites/*
"""
# The lab has another name, so that the deployed functions leave its jobs alone.
LAB = "granted"
BUCKET = "granted-results"
TABLE = "granted-rows"
TOPIC = "granted-verdicts"
EXECUTION = "e1"


def suite(instance: str) -> dict[str, Any]:
    return {
        "name": "granted",
        "goal": "fastest",
        "search": "grid",
        "workload": {
            "task": "script",
            "source": f"s3://{BUCKET}/code/x/sourcedir.tar.gz",
            "entry_point": "train.py",
            "examples": 10,
        },
        "training": {"instance": instance},
        "baseline": {},
        "matrix": {"hyperparameters.x": [0]},
        "measurement": {"trials": 4},
        "limits": {"max_usd": 1000, "max_hours": 1, "max_job_seconds": 60},
    }


def prepared_suite() -> dict[str, Any]:
    return {
        **suite("local.cpu"),
        "workload": {
            "task": "causal-lm",
            "model": {"config": {"model_type": "gpt2"}},
            "tokenizer": {"train_vocabulary_size": 300},
            "dataset": {"path": f"s3://{BUCKET}/data/x/"},
            "sequence_length": 8,
            "examples": 10,
        },
        "training": {},
        "matrix": {"instance": ["local.cpu"]},
    }


@pytest.fixture(scope="module")
def sent(lab: LocalLab) -> frozenset[Call]:
    ports = require_ports(lab.home)
    environment = environment_of(lab.home)
    functions = Lambdas(
        LAB=LAB,
        BUCKET=BUCKET,
        TABLE=TABLE,
        TRAINING_ROLE_ARN="arn:aws:iam::000000000000:role/training",
        SOURCE_S3_URI=f"s3://{BUCKET}/source.tar.gz",
        SECONDS_BETWEEN_STARTS="0.01",
        STATE_MACHINE_ARN=f"arn:aws:states:{environment['AWS_REGION']}:000000000000:stateMachine:granted-suites",
        TOPIC_ARN=f"arn:aws:sns:{environment['AWS_REGION']}:000000000000:{TOPIC}",
    )
    with as_if_in(environment):
        make_storage()
        end_endpoints(functions)
        go_through_everything(functions, f"http://127.0.0.1:{ports.sagemaker}")
    return read_calls(lab.folder / CALLS_FILE, lab=LAB)


def make_storage() -> None:
    boto3.client("sns").create_topic(Name=TOPIC)
    boto3.client("s3").create_bucket(Bucket=BUCKET)
    boto3.client("s3").put_object(
        Bucket=BUCKET, Key="source.tar.gz", Body=b"the training code, which no job here runs"
    )
    make_table(TABLE)


def end_endpoints(functions: Lambdas) -> None:
    """One that the sweep ends, and one that goes with its lab."""
    serving = open_serving(BucketEnvironment(lab=LAB, bucket=BUCKET, table=TABLE))
    began = time.time() - 3600
    archive = tar_gz({"code/inference.py": "def model_fn(folder): return None"})
    boto3.client("s3").put_object(Bucket=BUCKET, Key=SAVED_MODEL, Body=archive)
    served = replace(DEPLOYMENT, instance_type="local.cpu", created_at=began)
    for hours in (1, 9):
        deployment = replace(served, name=f"{LAB}--{hours}", hours=hours)
        deploy_model(
            deployment, serving, replace(SETTINGS, bucket=BUCKET, lab=LAB), clock=lambda: began
        )
        eventually(
            lambda: (
                {endpoint.status for endpoint in serving.endpoints.list_named(LAB)} == {"InService"}
            )
        )
    functions.call("reconcile_runs", {})
    assert [endpoint.name for endpoint in serving.endpoints.list_named(LAB)] == [f"{LAB}--9"]
    url = boto3.client("s3").generate_presigned_url(
        "put_object", {"Bucket": BUCKET, "Key": "answer"}
    )
    names = {
        "LogicalResourceId": "Guard",
        "StackId": "stack",
        "RequestId": "request",
        "ResourceType": "Custom::Guard",
    }
    functions.call("guard_lab", {"RequestType": "Delete", "ResponseURL": url, **names})
    assert b"SUCCESS" in boto3.client("s3").get_object(Bucket=BUCKET, Key="answer")["Body"].read()
    assert not (serving.names() or serving.endpoints.list_named(LAB))


def go_through_everything(functions: Lambdas, service: str) -> None:
    """Runs each function on each of its ways, with a job that ends, a refused job, and a job that
    nobody waits for any more.
    """
    put_failing_script()
    remote = {"execution_id": "remote", "suite": suite("ml.g5.xlarge")}
    functions.call("check_quotas", functions.call("plan_suite", remote))
    again = {**suite("ml.g5.xlarge"), CONTINUES: "remote"}
    functions.call("plan_suite", {"execution_id": "remote-2", "suite": again})
    boto3.client("s3").put_object(Bucket=BUCKET, Key="data/x/a.txt", Body=b"some text")
    with_data = functions.call(
        "plan_suite", {"execution_id": "with-data", "suite": prepared_suite()}
    )
    assert len(functions.call("check_quotas", with_data)["preparations"]) == 1
    planned = functions.call("plan_suite", {"execution_id": EXECUTION, "suite": suite("local.cpu")})
    (lane,) = functions.call("plan_round", functions.call("check_quotas", planned))["lanes"]
    items = (
        boto3.client("s3")
        .get_object(Bucket=BUCKET, Key=lane["packs"][0]["items_key"])["Body"]
        .read()
    )
    given_up, ended, refused, orphaned = [item["run"] for item in json.loads(items)]

    abandoned_job = submit(functions, given_up)
    wait_for_end(abandoned_job)
    functions.call("record_run", {"run": given_up, "end": {"Error": "States.Timeout", "Cause": ""}})
    with throttled(service):
        submit(functions, refused)
    orphaned_job = submit(functions, orphaned)
    wait_for_end(orphaned_job)
    make_older(orphaned_job, seconds=100)
    make_older(abandoned_job, seconds=-600)  # on a busy machine it may be old enough by itself
    functions.call("stop_runs", {"detail": {"name": EXECUTION}})
    functions.call("reconcile_runs", {})

    # Nobody waits from here on, so FinishRun records by itself, and stops what else runs for the
    # run.
    job = submit_to_stopped(functions, ended)
    rows().write_all([RunRows(rows()).noting(EXECUTION, ended["run_id"], abandoned_job)])
    functions.call("finish_run", {"detail": {"TrainingJobName": job}})
    functions.call("judge_suite", {"execution_id": EXECUTION, "round": 1})


def put_failing_script() -> None:
    source = tar_gz({"train.py": "raise SystemExit('as asked')\n"})
    boto3.client("s3").put_object(Bucket=BUCKET, Key="code/x/sourcedir.tar.gz", Body=source)


def rows() -> Table:
    return Table(clients.table(TABLE))


def submit(functions: Lambdas, run: dict[str, Any]) -> str:
    functions.call("submit_run", {"item": {"run": run}, "token": "nobody"})
    jobs = RunRows(rows()).read(EXECUTION, run["run_id"]).jobs
    return max(jobs, default="")


def submit_to_stopped(functions: Lambdas, run: dict[str, Any]) -> str:
    rows().update(execution_key(EXECUTION), "SET is_stopping = :no", values={":no": False})
    job = submit(functions, run)
    wait_for_end(job)
    ExecutionRows(rows()).mark_stopping(EXECUTION)
    return job


def wait_for_end(job_name: str) -> None:
    """Waits until the job has ended and its log has arrived, which may be later."""
    wait_until(boto3.client("sagemaker"), job_name)
    tail = LogTail(clients.logs())
    eventually(lambda: tail.read(job_name))


def make_older(job_name: str, *, seconds: int) -> None:
    """The sweep looks only at attempts of a certain age, so the test makes this one older."""
    clients.table(TABLE).update_item(
        Key={"pk": f"job#{job_name}", "sk": "attempt"},
        UpdateExpression="SET submitted_at = submitted_at - :seconds",
        ExpressionAttributeValues={":seconds": seconds},
    )


@contextmanager
def throttled(service: str) -> Iterator[None]:
    try:
        administer(
            service, "/_local/faults", {"throttling_fraction": 1.0}, os.environ["AWS_ACCESS_KEY_ID"]
        )
        yield
    finally:
        administer(service, "/_local/faults", {}, os.environ["AWS_ACCESS_KEY_ID"])


@pytest.mark.parametrize("function", FUNCTIONS)
def test_every_call_of_the_record_is_still_sent(sent: frozenset[Call], function: str) -> None:
    recorded = {call for call in recorded_calls() if call.function == function}
    assert recorded - sent - UNSENT.keys() <= set(map(Call.parse, ELSEWHERE.split("\n")[1:-1]))
