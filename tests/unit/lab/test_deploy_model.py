"""From a trained model to a checked endpoint: the requests, their order, and what is refused before anything exists."""

import json
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import boto3
import botocore.session
import pytest
from botocore.validate import ParamValidator

from lambdas.deploy_model import handler
from localcloud.sagemaker_service.api.request_check import check_request
from tests.unit.lab_in_memory import NOW
from tests.unit.serving_in_memory import (
    DEPLOYMENT,
    NAME,
    ROLE,
    SAVED_MODEL,
    SETTINGS,
    MemoryServing,
    client_error,
)
from traindyno.aws.endpoints import InvocationFailed
from traindyno.core.errors import DocumentInvalid
from traindyno.core.instances.instance_types import has_gpu
from traindyno.core.s3_keys import served_model_key
from traindyno.core.serving.deployment import ModelNotServable, deployment_document
from traindyno.lab.serving.check_endpoint import AnswersDiffer, check_endpoint
from traindyno.lab.serving.deploy_model import deploy_model
from traindyno.lab.serving.end_endpoints import remove_endpoint
from traindyno.sagemaker.job_settings import LabJobs
from traindyno.sagemaker.serving import GPU_VARIABLE, build_requests, container_kind
from training.serving import inference

KEY = "arn:aws:kms:us-east-1:111122223333:key/abc"
OWN_NETWORK = replace(
    SETTINGS,
    jobs=LabJobs(
        subnet_ids=("subnet-0123456789abcdef0",),
        security_group_ids=("sg-0123456789abcdef0",),
        volume_key_arn=KEY,
        output_key_arn=KEY,
        tags={"team": "vision"},
    ),
)
SAGEMAKER = botocore.session.get_session().get_service_model("sagemaker")


@pytest.fixture
def sdk_requests(monkeypatch: pytest.MonkeyPatch) -> dict[str, dict[str, Any]]:
    """What ``PyTorchModel(…).deploy(…)`` of the installed SageMaker SDK sends, by the operation."""
    import sagemaker.model
    from sagemaker.pytorch import PyTorchModel
    from sagemaker.session import Session

    client = MagicMock()
    boto_session = boto3.Session("key", "secret", region_name="us-east-1")
    session = Session(boto_session=boto_session, sagemaker_client=client, default_bucket="results")
    session.s3_client = session.s3_resource = MagicMock()
    monkeypatch.setattr(sagemaker.model.utils, "repack_model", lambda **_: None)
    model = PyTorchModel(
        name=NAME,
        model_data=f"s3://results/models/{NAME}/model.tar.gz",
        role=ROLE,
        entry_point="inference.py",
        source_dir=str(Path(inference.__file__).parent),
        framework_version="2.6.0",
        py_version="py312",
        sagemaker_session=session,
    )
    model.deploy(1, "ml.c5.xlarge", endpoint_name=NAME, wait=False)
    return {name: request for name, _, request in client.method_calls if name.startswith("create_")}


def test_the_requests_are_those_of_the_sdk(sdk_requests: dict[str, dict[str, Any]]) -> None:
    """But for tags, time limits, and the archive: the SDK packs the handler into another one."""
    ours = dict(zip(sdk_requests, build_requests(DEPLOYMENT, SETTINGS), strict=True))
    tags = {tag["Key"]: tag["Value"] for tag in ours["create_endpoint"]["Tags"]}
    for requests in (ours, sdk_requests):
        del requests["create_model"]["PrimaryContainer"]["ModelDataUrl"]
        for request in requests.values():
            request.pop("Tags", None)
    (variant,) = ours["create_endpoint_config"]["ProductionVariants"]
    for name in [name for name in variant if name.endswith("TimeoutInSeconds")]:
        del variant[name]
    assert ours == sdk_requests
    assert (tags["traindyno:lab"], tags["traindyno:owner"]) == ("traindyno", "ada")
    assert tags["traindyno:ends_at"] == "2026-09-21T15:13:20Z"


@pytest.mark.parametrize("settings", [SETTINGS, OWN_NETWORK])
@pytest.mark.parametrize("instance_type", ["ml.c5.xlarge", "ml.g5.xlarge"])
def test_each_request_is_one_that_sagemaker_knows(settings: Any, instance_type: str) -> None:
    requests = build_requests(replace(DEPLOYMENT, instance_type=instance_type), settings)
    for operation, request in zip(("CreateModel", "CreateEndpointConfig", "CreateEndpoint"), requests, strict=True):
        model = SAGEMAKER.operation_model(operation)
        assert model.input_shape is not None
        report = ParamValidator().validate(request, model.input_shape)
        assert not report.has_errors(), report.generate_report()
        check_request(model, request, {})
    assert requests[1].get("KmsKeyId") == settings.jobs.volume_key_arn


def test_every_nvidia_type_gets_the_images_driver_and_a_handler_that_needs_its_gpu() -> None:
    types = SAGEMAKER.shape_for("ProductionVariantInstanceType").metadata["enum"]
    amis = SAGEMAKER.shape_for("ProductionVariantInferenceAmiVersion").metadata["enum"]
    served = [each for each in types if not each.startswith(("ml.trn", "ml.inf"))]
    for instance_type in (*served, "ml.g99.xlarge"):
        model, config, _ = build_requests(replace(DEPLOYMENT, instance_type=instance_type), SETTINGS)
        is_gpu = has_gpu(instance_type) or instance_type.startswith(("ml.g", "ml.p"))
        container, (variant,) = model["PrimaryContainer"], config["ProductionVariants"]
        assert ("-gpu-" in container["Image"]) == (GPU_VARIABLE in container["Environment"]) == is_gpu
        assert (variant.get("InferenceAmiVersion") in amis) == is_gpu
    assert GPU_VARIABLE == inference.GPU_VARIABLE
    for instance_type in ("ml.trn1.2xlarge", "ml.inf2.xlarge"):
        with pytest.raises(ModelNotServable, match=r"got ml\..*Expected an instance type with CPUs"):
            container_kind(instance_type)


def test_a_deployment_is_copied_created_once_checked_and_removed() -> None:
    lab = MemoryServing()
    lab.deploy()
    lab.deploy()  # the same request again
    assert lab.objects.contents[served_model_key(NAME)] == b"the model"
    assert lab.serving.find(NAME) == DEPLOYMENT
    samples, latency = check_endpoint(DEPLOYMENT, lab.serving)
    assert latency is not None
    assert (samples, latency.requests) == (2, 100)
    assert remove_endpoint(NAME, lab.serving)
    assert remove_endpoint(NAME, lab.serving)  # nothing is left
    assert not (lab.sagemaker.models or lab.sagemaker.configs or lab.sagemaker.endpoints or lab.serving.names())
    assert served_model_key(NAME) not in lab.objects.contents


def test_what_can_not_be_served_creates_nothing() -> None:
    lab = MemoryServing()
    isolated = replace(SETTINGS, jobs=LabJobs(isolates_network=True))
    with pytest.raises(ModelNotServable, match=r"lab traindyno has isolate_network=on, .*needs a network"):
        deploy_model(deployment_document(DEPLOYMENT), serving=lab.serving, settings=isolated, clock=lambda: NOW)
    with pytest.raises(DocumentInvalid, match=r'name: got "other--x", expected a name .* begins with traindyno--'):
        lab.deploy(name="other--x")
    with pytest.raises(DocumentInvalid, match=r"max_usd: .* expected at least \$0.068, which pays for the 1200 s"):
        lab.deploy(max_usd=Decimal("0.067"))
    with pytest.raises(DocumentInvalid, match=r"expected no amount, as the price of ml\.c5\.xlarge is unknown"):
        lab.deploy(max_usd=Decimal(1), usd_per_hour=None)
    times = iter([NOW, NOW + 3601])
    with pytest.raises(ModelNotServable, match="was ended while its model was copied"):
        deploy_model(deployment_document(DEPLOYMENT), serving=lab.serving, settings=SETTINGS, clock=lambda: next(times))
    assert served_model_key(NAME) not in lab.objects.contents
    del lab.objects.contents[SAVED_MODEL]
    with pytest.raises(ModelNotServable, match="large models expire 30 days after"):
        lab.deploy()
    assert not lab.sagemaker.models


def test_the_handler_answers_with_the_reason_of_a_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    lab = MemoryServing()
    names = {"LAB": "traindyno", "BUCKET": "results", "TABLE": "rows", "AWS_REGION": "us-east-1"}
    for name, value in {**names, "SERVING_ROLE_ARN": ROLE, "LAB_JOBS": json.dumps({"tags": {"a": "b"}})}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(handler, "open_serving", lambda _: lab.serving)
    document = deployment_document(replace(DEPLOYMENT, hours=None))
    assert handler.handle(document, None) == {}
    assert {"Key": "a", "Value": "b"} in lab.sagemaker.models[NAME]["Tags"]
    assert {"Key": "traindyno:ends_at", "Value": "kept"} in lab.sagemaker.endpoints[NAME]["Tags"]

    def refuse(operation: str, _name: str) -> None:
        if operation == "CreateEndpoint":
            raise client_error("ResourceLimitExceeded", "the account-level limit is 0 Instances")

    lab.sagemaker.fault = refuse
    assert "SageMaker refused the endpoint: " in handler.handle(document, None)["refused"]


def test_answers_that_differ_are_told_and_throttled_ones_are_asked_again() -> None:
    lab, waits, left = MemoryServing(), list[float](), ["ThrottlingException"] * 2
    lab.deploy()

    def throttle(operation: str, _name: str) -> None:
        if operation == "InvokeEndpoint" and left:
            raise client_error(left.pop(), "Rate exceeded")

    lab.sagemaker.fault = throttle
    clock = iter(range(0, 100_000, 7))
    _, latency = check_endpoint(DEPLOYMENT, lab.serving, clock=lambda: float(next(clock)), sleep=waits.append)
    assert waits == [1.0, 2.0]
    assert latency is not None  # measured for at most a minute
    assert (latency.requests < 10, latency.p50_seconds, latency.p99_seconds) == (True, 7, 7)
    lab.sagemaker.wrong = {"bad"}
    with pytest.raises(AnswersDiffer, match=r"2 answers differ.*sample 2 \('a bad film'\): got 0.500, expected 'bad'"):
        check_endpoint(DEPLOYMENT, lab.serving)
    left.append("ModelError")
    with pytest.raises(InvocationFailed, match="ModelError"):
        check_endpoint(DEPLOYMENT, lab.serving)
