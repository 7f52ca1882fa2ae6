"""Models hosted by the local SageMaker service: real containers over HTTP, with SageMaker's statuses and failures."""

import json
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from tests.archives import tar_gz
from tests.local.aws_double import AwsDouble
from tests.local.jobs import BUCKET, client, eventually
from tests.local.running_service import RunningService, start_service

pytestmark = pytest.mark.local

HANDLER = """
import json
def model_fn(folder):
    print("loading the model")
    {at_load}
    return "model"
def input_fn(body, content_type):
    return [json.loads(line) for line in body.decode().splitlines()]
def predict_fn(data, model):
    if data[0] == "die":
        import os; os._exit(3)
    if "until" in data[0]:
        import pathlib, time
        pathlib.Path(data[0]["began"]).touch()
        while not pathlib.Path(data[0]["until"]).exists(): time.sleep(0.02)
    return [each["inputs"].upper() for each in data]
def output_fn(made, accept):
    return "\\n".join(map(json.dumps, made))
"""
ROLE = "arn:aws:iam::000000000000:role/serving"


def put_model(aws: AwsDouble, name: str, at_load: str = "pass") -> str:
    aws.objects[f"{BUCKET}/models/{name}/model.tar.gz"] = tar_gz(
        {"code/inference.py": HANDLER.replace("{at_load}", at_load)}
    )
    return f"s3://{BUCKET}/models/{name}/model.tar.gz"


INSTANCES = {"InstanceType": "local.cpu", "InitialInstanceCount": 1}


def make_endpoint(sagemaker: Any, name: str, uri: str, **place: Any) -> None:
    container = {"Image": "local", "ModelDataUrl": uri}
    sagemaker.create_model(ModelName=name, PrimaryContainer=container, ExecutionRoleArn=ROLE)
    variant = {"VariantName": "AllTraffic", "ModelName": name, **(place or INSTANCES)}
    sagemaker.create_endpoint_config(EndpointConfigName=name, ProductionVariants=[variant])
    tags = [{"Key": "traindyno:owner", "Value": "ada"}]
    sagemaker.create_endpoint(EndpointName=name, EndpointConfigName=name, Tags=tags)


def wait_for(sagemaker: Any, name: str, status: str, seconds: float = 60) -> dict[str, Any]:
    deadline = time.monotonic() + seconds
    while (found := sagemaker.describe_endpoint(EndpointName=name))["EndpointStatus"] != status:
        assert time.monotonic() < deadline, f"{name} is {found['EndpointStatus']}: {found.get('FailureReason')}"
        time.sleep(0.05)
    described: dict[str, Any] = found
    return described


def statuses(aws: AwsDouble, kind: str, name: str) -> set[str]:
    """The set of statuses: EventBridge does not keep their order and may deliver an event twice."""
    events = [event["detail"] for event in aws.invocations if event.get("detail-type") == f"SageMaker {kind}"]
    key = "EndpointStatus" if "Endpoint" in kind else "TransformJobStatus"
    return {detail[key] for detail in events if name in (detail.get("EndpointName"), detail.get("TransformJobName"))}


@pytest.fixture(scope="module")
def sagemaker(aws: AwsDouble, service: RunningService) -> Any:
    aws.patterns["all"] = {"source": ["aws.sagemaker"]}
    return client("sagemaker", service.endpoint)


def ask(service: RunningService, name: str, document: Any) -> Any:
    runtime = client("sagemaker-runtime", service.endpoint)
    answer = runtime.invoke_endpoint(
        EndpointName=name, Body=json.dumps(document).encode(), ContentType="application/json"
    )
    return json.loads(answer["Body"].read())


def test_an_endpoint_answers_until_it_is_deleted(aws: AwsDouble, service: RunningService, sagemaker: Any) -> None:
    with pytest.raises(ClientError, match="not found"):
        ask(service, "good", {"inputs": "hello"})
    make_endpoint(sagemaker, "good", put_model(aws, "good"))
    found = wait_for(sagemaker, "good", "InService")
    assert found["ProductionVariants"][0]["CurrentInstanceCount"] == 1
    assert sagemaker.list_tags(ResourceArn=found["EndpointArn"])["Tags"] == [{"Key": "traindyno:owner", "Value": "ada"}]
    assert ask(service, "good", {"inputs": "hello"}) == "HELLO"
    with pytest.raises(ClientError) as refused:
        ask(service, "good", {"input": "hello"})
    answer: dict[str, Any] = {**refused.value.response}
    assert answer["Error"]["Code"] == "ModelError"
    assert answer["OriginalStatusCode"] == 500
    assert "KeyError" in answer["OriginalMessage"]

    with pytest.raises(ClientError) as cut_off:  # the container ends during the request; another is started
        ask(service, "good", "die")
    assert cut_off.value.response["Error"]["Code"] == "ModelError"
    eventually(lambda: answers(service, "good"), seconds=30)

    sagemaker.delete_endpoint(EndpointName="good")
    eventually(lambda: not sagemaker.list_endpoints(NameContains="good")["Endpoints"])
    with pytest.raises(ClientError, match="Could not find endpoint"):
        sagemaker.describe_endpoint(EndpointName="good")
    eventually(lambda: statuses(aws, "Endpoint State Change", "good") == {"IN_SERVICE", "DELETING"})
    assert any("loading the model" in line for _, line in aws.log_lines)


def answers(service: RunningService, name: str) -> bool:
    try:
        return bool(ask(service, name, {"inputs": "again"}) == "AGAIN")
    except ClientError:
        return False


def test_a_model_that_does_not_load_fails_with_the_containers_last_lines(aws: AwsDouble, sagemaker: Any) -> None:
    make_endpoint(sagemaker, "bad", put_model(aws, "bad", at_load='raise RuntimeError("the weights are missing")'))
    reason = wait_for(sagemaker, "bad", "Failed")["FailureReason"]
    assert reason.startswith(
        "The primary container for production variant AllTraffic did not pass the ping health check."
    )
    assert "RuntimeError: the weights are missing" in reason
    assert "loading the model" in reason
    make_endpoint(sagemaker, "absent", f"s3://{BUCKET}/models/absent.tar.gz")
    assert "models/absent.tar.gz" in wait_for(sagemaker, "absent", "Failed")["FailureReason"]
    for name in ("bad", "absent"):
        sagemaker.delete_endpoint(EndpointName=name)


def test_a_serverless_endpoint_answers_and_refuses_what_exceeds_its_concurrency(
    aws: AwsDouble, service: RunningService, sagemaker: Any, tmp_path: Path
) -> None:
    config = {"MemorySizeInMB": 2048, "MaxConcurrency": 1}
    make_endpoint(sagemaker, "rare", put_model(aws, "rare"), ServerlessConfig=config)
    assert sagemaker.describe_endpoint(EndpointName="rare")["EndpointStatus"] == "Creating"
    (variant,) = wait_for(sagemaker, "rare", "InService")["ProductionVariants"]
    assert variant["CurrentServerlessConfig"] == config
    assert "CurrentInstanceCount" not in variant
    assert ask(service, "rare", {"inputs": "hello"}) == "HELLO"
    began, until = tmp_path / "began", tmp_path / "until"
    with ThreadPoolExecutor() as pool:
        first = pool.submit(ask, service, "rare", {"inputs": "slow", "began": str(began), "until": str(until)})
        try:
            eventually(began.exists)
            assert is_throttled(service, "rare")
        finally:
            until.touch()
        assert first.result() == "SLOW"
    assert ask(service, "rare", {"inputs": "again"}) == "AGAIN"
    sagemaker.delete_endpoint(EndpointName="rare")
    eventually(lambda: statuses(aws, "Endpoint State Change", "rare") == {"IN_SERVICE", "DELETING"})


def is_throttled(service: RunningService, name: str) -> bool:
    """Whether a request is throttled, without boto3's own retries."""
    runtime = client("sagemaker-runtime", service.endpoint, Config(retries={"total_max_attempts": 1}))
    try:
        runtime.invoke_endpoint(EndpointName=name, Body=b'{"inputs": "quick"}', ContentType="application/json")
    except ClientError as error:
        return bool(error.response["Error"]["Code"] == "ThrottlingException")
    return False


@pytest.mark.parametrize(
    "change",
    [
        {"InstanceType": "ml.c5.xlarge"},
        {"ModelName": "nobody"},
        {"InstanceType": ""},
        {"InstanceType": "", "ServerlessConfig": {"MemorySizeInMB": 1500, "MaxConcurrency": 1}},
        {"ServerlessConfig": {"MemorySizeInMB": 2048, "MaxConcurrency": 1}},
    ],
)
def test_what_can_not_be_hosted_is_refused(aws: AwsDouble, sagemaker: Any, change: dict[str, Any]) -> None:
    name = f"kept-{len(aws.objects)}"
    container = {"Image": "local", "ModelDataUrl": put_model(aws, name)}
    sagemaker.create_model(ModelName=name, PrimaryContainer=container, ExecutionRoleArn=ROLE)
    chosen = {"VariantName": "a", "ModelName": name, "InstanceType": "local.cpu", **change}
    variant = {member: value for member, value in chosen.items() if value}
    with pytest.raises(ClientError) as refused:
        sagemaker.create_endpoint_config(EndpointConfigName="x", ProductionVariants=[variant])
    assert refused.value.response["Error"]["Code"] == "ValidationException"


def test_endpoints_are_hosted_again_when_the_service_is_started_again(aws: AwsDouble, tmp_path: Any) -> None:
    options = ("--engine", "process", "--checkpoint-sync-seconds", "0.2")
    with start_service(tmp_path, aws.endpoint, *options) as first:
        make_endpoint(client("sagemaker", first.endpoint), "stays", put_model(aws, "stays"))
        wait_for(client("sagemaker", first.endpoint), "stays", "InService")
    with start_service(tmp_path, aws.endpoint, *options) as second:
        again = client("sagemaker", second.endpoint)
        wait_for(again, "stays", "InService")
        eventually(lambda: answers(second, "stays"), seconds=30)
        assert ask(second, "stays", {"inputs": "the same model"}) == "THE SAME MODEL"
        assert [each["EndpointName"] for each in again.list_endpoints()["Endpoints"]] == ["stays"]


def transform_request(name: str, model: str) -> dict[str, Any]:
    source = {"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": f"s3://{BUCKET}/requests/"}}
    return {
        "TransformJobName": name,
        "ModelName": model,
        "BatchStrategy": "MultiRecord",
        "MaxPayloadInMB": 1,
        "TransformInput": {"DataSource": source, "ContentType": "application/jsonlines", "SplitType": "Line"},
        "TransformOutput": {"S3OutputPath": f"s3://{BUCKET}/answers/{name}", "AssembleWith": "Line"},
        "TransformResources": {"InstanceType": "local.cpu", "InstanceCount": 1},
    }


def ended_transform(sagemaker: Any, name: str) -> dict[str, Any]:
    found: dict[str, Any] = {}

    def has_ended() -> bool:
        found.update(sagemaker.describe_transform_job(TransformJobName=name))
        return found["TransformJobStatus"] not in {"InProgress", "Stopping"}

    eventually(has_ended, seconds=60)
    return found


def test_a_transform_job_answers_every_line_of_every_object(aws: AwsDouble, sagemaker: Any) -> None:
    container = {"Image": "local", "ModelDataUrl": put_model(aws, "batch")}
    sagemaker.create_model(ModelName="batch", PrimaryContainer=container, ExecutionRoleArn=ROLE)
    aws.objects[f"{BUCKET}/requests/a.jsonl"] = b'{"inputs": "a"}\n{"inputs": "b"}\n'
    aws.objects[f"{BUCKET}/requests/more/c.jsonl"] = b'{"inputs": "c"}'
    sagemaker.create_transform_job(**transform_request("whole", "batch"))
    done = ended_transform(sagemaker, "whole")
    assert done["TransformJobStatus"] == "Completed", done.get("FailureReason")
    assert done["TransformEndTime"] > done["TransformStartTime"]
    assert aws.objects[f"{BUCKET}/answers/whole/a.jsonl.out"] == b'"A"\n"B"\n'
    assert aws.objects[f"{BUCKET}/answers/whole/more/c.jsonl.out"] == b'"C"\n'
    eventually(lambda: "Completed" in statuses(aws, "Transform Job State Change", "whole"))

    aws.objects[f"{BUCKET}/requests/wrong.jsonl"] = b"{}\n"
    sagemaker.create_transform_job(**transform_request("refused", "batch"))
    failed = ended_transform(sagemaker, "refused")
    assert failed["TransformJobStatus"] == "Failed"
    assert "answered 500" in failed["FailureReason"]
    with pytest.raises(ClientError) as taken:
        sagemaker.create_transform_job(**transform_request("refused", "batch"))
    assert taken.value.response["Error"]["Code"] == "ResourceInUse"
