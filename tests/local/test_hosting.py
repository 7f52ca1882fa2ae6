"""Models hosted by the local SageMaker service: real containers, with SageMaker's statuses and
failures.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.archives import tar_gz
from tests.local.aws_double import AwsDouble
from tests.local.jobs import BUCKET, client, eventually
from tests.local.running_service import RunningService, start_service

pytestmark = [pytest.mark.local, pytest.mark.nightly]

HANDLER = """
import json, os
def model_fn(folder):
    print("loading the model")
    {at_load}
    return "model"
def input_fn(body, content_type):
    return json.loads(body)
def predict_fn(data, model):
    return [data["inputs"].upper(), os.getpid()]
def output_fn(made, accept):
    return json.dumps(made)
"""
ROLE = "arn:aws:iam::000000000000:role/serving"
TAGS = [{"Key": "traindyno:owner", "Value": "ada"}]


def make_endpoint(
    aws: AwsDouble,
    sagemaker: Any,
    name: str,
    at_load: str = "pass",
    instance_type: str = "local.cpu",
) -> None:
    key = f"{BUCKET}/models/{name}/model.tar.gz"
    aws.objects[key] = tar_gz({"code/inference.py": HANDLER.replace("{at_load}", at_load)})
    host_model(sagemaker, name, f"s3://{key}", instance_type)


def host_model(sagemaker: Any, name: str, model_uri: str, instance_type: str = "local.cpu") -> None:
    container = {"Image": "local", "ModelDataUrl": model_uri}
    sagemaker.create_model(ModelName=name, PrimaryContainer=container, ExecutionRoleArn=ROLE)
    variant = {
        "VariantName": "AllTraffic",
        "ModelName": name,
        "InstanceType": instance_type,
        "InitialInstanceCount": 1,
    }
    sagemaker.create_endpoint_config(EndpointConfigName=name, ProductionVariants=[variant])
    sagemaker.create_endpoint(EndpointName=name, EndpointConfigName=name, Tags=TAGS)


def wait_for(sagemaker: Any, name: str, status: str) -> dict[str, Any]:
    eventually(
        lambda: sagemaker.describe_endpoint(EndpointName=name)["EndpointStatus"] == status,
        seconds=60,
    )
    endpoint: dict[str, Any] = sagemaker.describe_endpoint(EndpointName=name)
    return endpoint


def ask(service: RunningService, name: str, document: Any) -> Any:
    runtime = client("sagemaker-runtime", service.endpoint)
    body = json.dumps(document).encode()
    answer = runtime.invoke_endpoint(EndpointName=name, Body=body, ContentType="application/json")
    return json.loads(answer["Body"].read())


def test_an_endpoint_answers_until_it_is_deleted(aws: AwsDouble, service: RunningService) -> None:
    sagemaker = client("sagemaker", service.endpoint)
    with pytest.raises(ClientError, match="not found"):
        ask(service, "good", {"inputs": "hello"})
    make_endpoint(aws, sagemaker, "good", at_load="import time; time.sleep(1)")
    with pytest.raises(ClientError, match="Cannot update in-progress endpoint"):
        sagemaker.delete_endpoint(EndpointName="good")
    with pytest.raises(ClientError, match="simulates none"):
        make_endpoint(aws, sagemaker, "dear", instance_type="ml.c5.xlarge")
    with pytest.raises(ClientError, match="already existing"):
        sagemaker.create_model(
            ModelName="good", PrimaryContainer={"Image": "local", "ModelDataUrl": "s3://b/k"}
        )
    arn = wait_for(sagemaker, "good", "InService")["EndpointArn"]
    assert sagemaker.list_tags(ResourceArn=arn)["Tags"] == TAGS
    text, process_id = ask(service, "good", {"inputs": "hello\nworld"})
    assert text == "HELLO\nWORLD"
    with pytest.raises(ClientError) as refused:
        ask(service, "good", {"input": "hello"})
    answer: dict[str, Any] = {**refused.value.response}
    assert (answer["Error"]["Code"], answer["OriginalStatusCode"]) == ("ModelError", 500)
    assert "KeyError" in answer["OriginalMessage"]
    sagemaker.delete_endpoint(EndpointName="good")
    assert not sagemaker.list_endpoints(NameContains="good")["Endpoints"]
    with pytest.raises(ClientError, match="Could not find endpoint"):
        sagemaker.describe_endpoint(EndpointName="good")
    assert not Path(f"/proc/{process_id}").exists()
    make_endpoint(aws, sagemaker, "broken", at_load="raise RuntimeError('no weights')")
    failure = wait_for(sagemaker, "broken", "Failed")["FailureReason"]
    assert "did not pass the ping health check" in failure
    assert "RuntimeError: no weights" in failure


def test_a_killed_service_leaves_no_container_and_hosts_its_endpoints_again(
    aws: AwsDouble, tmp_path: Path
) -> None:
    options = ("--checkpoint-sync-seconds", "0.2")
    with start_service(tmp_path, aws.endpoint, *options) as first:
        sagemaker = client("sagemaker", first.endpoint)
        make_endpoint(aws, sagemaker, "stays")
        wait_for(sagemaker, "stays", "InService")
        _, process_id = ask(first, "stays", {"inputs": "who"})
        first.process.kill()
        eventually(lambda: not Path(f"/proc/{process_id}").exists())
    with start_service(tmp_path, aws.endpoint, *options) as second:
        wait_for(client("sagemaker", second.endpoint), "stays", "InService")
        assert ask(second, "stays", {"inputs": "again"})[0] == "AGAIN"
