"""Every role holds what its handler asks for, and nothing more: compared with the calls made in the local cloud."""

import json
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
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
from traindyno.aws import clients
from traindyno.aws.log_tail import LogTail
from traindyno.aws.table import Table
from traindyno.core.lab_names import OPEN_ATTEMPTS_INDEX
from traindyno.store.executions import ExecutionRows, execution_key
from traindyno.store.runs import RunRows

pytestmark = pytest.mark.local

# Actions that AWS checks without an operation of their own, by the action that brings them with it.
BROUGHT_ALONG = {
    "sagemaker:CreateTrainingJob": {"sagemaker:AddTags", "iam:PassRole"},
    "sns:Publish": {"kms:Decrypt", "kms:GenerateDataKey"},
    # Without it, S3 answers a missing object with "access denied" instead of "not found".
    "s3:GetObject": {"s3:ListBucket"},
    # Which of the two answers a task gets is decided by how its job ended.
    "states:SendTaskSuccess": {"states:SendTaskFailure"},
    "states:SendTaskFailure": {"states:SendTaskSuccess"},
}
# Asked for only where Service Quotas names a usage metric, where a quota has no code here, where anybody has jobs, or
# where instances are kept warm.
WARM_POOLS = {"sagemaker:ListTrainingJobs", "sagemaker:UpdateTrainingJob"}
ELSEWHERE = {
    "CheckQuotas": {
        "cloudwatch:GetMetricStatistics",
        "sagemaker:DescribeTrainingJob",
        "servicequotas:ListAWSDefaultServiceQuotas",
        "servicequotas:ListServiceQuotas",
    },
    "SubmitRun": {"sagemaker:ListTrainingJobs"},
    "FinishRun": {"sagemaker:ListTrainingJobs"},
    "JudgeSuite": WARM_POOLS,
    "StopRuns": WARM_POOLS,
}
# What Lambda itself does under the function's role: log, and keep events that failed.
OWN_LOG = {"logs:CreateLogStream", "logs:PutLogEvents", "sqs:SendMessage"}
# A lab of another name, so that the deployed functions leave this one's jobs alone.
LAB, BUCKET, TABLE, EXECUTION = "granted", "granted-results", "granted-rows", "e1"


def suite(instance: str) -> dict[str, Any]:
    return {
        "name": "granted",
        "goal": "fastest",
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
def recorder(lab: LocalLab) -> Iterator[Recorder]:
    ports = require_ports(lab.home)
    region = local_environment(ports)["AWS_REGION"]
    role = "arn:aws:iam::000000000000:role/training"
    environment = {
        **local_environment(ports),
        **{"LAB": LAB, "BUCKET": BUCKET, "TABLE": TABLE},
        **{"TRAINING_ROLE_ARN": role, "SOURCE_S3_URI": f"s3://{BUCKET}/source.tar.gz"},
        "SECONDS_BETWEEN_STARTS": "0.01",
        "STATE_MACHINE_ARN": f"arn:aws:states:{region}:000000000000:stateMachine:granted-suites",
    }
    with recording(environment) as recorder:
        make_storage()
        topic = boto3.client("sns").create_topic(Name="granted")["TopicArn"]
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("TOPIC_ARN", topic)
            go_through_everything(recorder, f"http://127.0.0.1:{ports.sagemaker}")
        yield recorder


def make_storage() -> None:
    boto3.client("s3").create_bucket(Bucket=BUCKET)
    boto3.client("s3").put_object(Bucket=BUCKET, Key="source.tar.gz", Body=b"the training code, which no job here runs")
    names = ("pk", "sk", "open", "execution_id")
    boto3.client("dynamodb").create_table(
        TableName=TABLE,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in names],
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
        GlobalSecondaryIndexes=[
            {
                "IndexName": OPEN_ATTEMPTS_INDEX,
                "KeySchema": [
                    {"AttributeName": "open", "KeyType": "HASH"},
                    {"AttributeName": "execution_id", "KeyType": "RANGE"},
                ],
                "Projection": {"ProjectionType": "ALL"},
            }
        ],
    )


def go_through_everything(recorder: Recorder, service: str) -> None:
    """Each function on each of its ways: a job that ends, one that is refused, one that nobody waits for any more."""
    put_failing_script()
    remote = {"execution_id": "remote", "suite": suite("ml.g5.xlarge")}
    recorder.call("check_quotas", recorder.call("plan_suite", remote))
    boto3.client("s3").put_object(Bucket=BUCKET, Key="data/x/a.txt", Body=b"some text")
    with_data = recorder.call("plan_suite", {"execution_id": "with-data", "suite": prepared_suite()})
    assert len(recorder.call("check_quotas", with_data)["preparations"]) == 1
    planned = recorder.call("plan_suite", {"execution_id": EXECUTION, "suite": suite("local.cpu")})
    (lane,) = recorder.call("plan_round", recorder.call("check_quotas", planned))["lanes"]
    items = boto3.client("s3").get_object(Bucket=BUCKET, Key=lane["packs"][0]["items_key"])["Body"].read()
    given_up, ended, refused, orphaned = [item["run"] for item in json.loads(items)]

    abandoned_job = submit(recorder, given_up)
    wait_for_end(abandoned_job)
    recorder.call("record_run", {"run": given_up, "failure": {"Error": "States.Timeout", "Cause": ""}})
    with throttled(service):
        submit(recorder, refused)
    orphaned_job = submit(recorder, orphaned)
    wait_for_end(orphaned_job)
    make_older(orphaned_job, seconds=100)
    make_older(abandoned_job, seconds=-600)  # on a busy machine it may be old enough by itself
    recorder.call("stop_runs", {"detail": {"name": EXECUTION}})
    recorder.call("reconcile_runs", {})

    # From here on nobody waits, so FinishRun records by itself, and stops what else runs for the run.
    job = submit_to_stopped(recorder, ended)
    rows().write_all([RunRows(rows()).noting(EXECUTION, ended["run_id"], abandoned_job)])
    recorder.call("finish_run", {"detail": {"TrainingJobName": job}})
    recorder.call("judge_suite", {"execution_id": EXECUTION, "round": 1})


def put_failing_script() -> None:
    source = tar_gz({"train.py": "raise SystemExit('as asked')\n"})
    boto3.client("s3").put_object(Bucket=BUCKET, Key="code/x/sourcedir.tar.gz", Body=source)


def rows() -> Table:
    return Table(clients.table(TABLE))


def submit(recorder: Recorder, run: dict[str, Any]) -> str:
    recorder.call("submit_run", {"run": run, "token": "nobody"})
    jobs = RunRows(rows()).read(EXECUTION, run["run_id"]).jobs
    return max(jobs, default="")


def submit_to_stopped(recorder: Recorder, run: dict[str, Any]) -> str:
    rows().update(execution_key(EXECUTION), "SET is_stopping = :no", values={":no": False})
    job = submit(recorder, run)
    wait_for_end(job)
    ExecutionRows(rows()).mark_stopping(EXECUTION)
    return job


def wait_for_end(job_name: str) -> None:
    """Until its log has arrived as well, which may take a moment longer."""
    tail = LogTail(clients.logs())
    for _ in range(600):
        job = boto3.client("sagemaker").describe_training_job(TrainingJobName=job_name)
        if job["TrainingJobStatus"] not in {"InProgress", "Stopping"} and tail.read(job_name):
            return
        time.sleep(0.1)
    raise AssertionError(f"{job_name} has not ended with a log after a minute")


def make_older(job_name: str, *, seconds: int) -> None:
    """The sweep looks at attempts of a certain age only."""
    clients.table(TABLE).update_item(
        Key={"pk": f"job#{job_name}", "sk": "attempt"},
        UpdateExpression="SET submitted_at = submitted_at - :seconds",
        ExpressionAttributeValues={":seconds": seconds},
    )


@contextmanager
def throttled(service: str) -> Iterator[None]:
    try:
        set_faults(service, {"throttling_fraction": 1.0})
        yield
    finally:
        set_faults(service, {})


def set_faults(service: str, document: dict[str, float]) -> None:
    body, json_type = json.dumps(document).encode(), {"Content-Type": "application/json"}
    request = urllib.request.Request(f"{service}/_local/faults", body, json_type)
    with urllib.request.urlopen(request, timeout=30) as answer:
        assert answer.status == 200


STATES = (
    *("PlanSuite", "CheckQuotas", "PlanRound", "SubmitRun", "FinishRun"),
    *("RecordRun", "ReconcileRuns", "StopRuns", "JudgeSuite"),
)


@pytest.mark.parametrize("state", STATES)
def test_a_role_holds_what_its_handler_asks_for_and_nothing_more(recorder: Recorder, state: str) -> None:
    folder = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in state).lstrip("_")
    asked = recorder.actions[folder]
    assert asked
    needed = asked.union(ELSEWHERE.get(state, set()), *(BROUGHT_ALONG.get(action, set()) for action in asked))
    statements = synthesised(target="aws").statements(f"Functions{state}Role")
    held = {action for statement in statements for action in as_list(statement["Action"])} - OWN_LOG
    assert held == needed
