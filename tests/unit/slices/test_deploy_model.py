"""From a trained model to a checked endpoint: the requests, their order, and what is refused before anything exists."""

from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from unittest.mock import MagicMock

import boto3
import botocore.session
import pytest
from botocore.validate import ParamValidator

from localcloud.sagemaker_service.api.request_check import check_request
from tests.unit.lab_in_memory import NOW
from tests.unit.serving_in_memory import DEPLOYMENT, NAME, ROLE, SAVED_MODEL, SETTINGS, MemoryServing
from traindyno.core.errors import DocumentInvalid
from traindyno.core.instances.instance_types import has_gpu
from traindyno.core.s3_keys import served_model_key
from traindyno.core.serving.deployment import ModelNotServable, deployment_document, parse_deployment
from traindyno.sagemaker.job_settings import LabJobs
from traindyno.sagemaker.serving import GPU_VARIABLE, build_requests, container_kind
from traindyno.slices.serving.client import check_endpoint, deploy_model
from training.serving import inference

KEY = "arn:aws:kms:us-east-1:111122223333:key/abc"
SUBNETS, GROUPS = ("subnet-0123456789abcdef0",), ("sg-0123456789abcdef0",)
OWN_JOBS = LabJobs(subnet_ids=SUBNETS, security_group_ids=GROUPS, volume_key_arn=KEY, tags={"team": "vision"})
SAGEMAKER = botocore.session.get_session().get_service_model("sagemaker")


def test_the_requests_are_those_of_the_sdk(monkeypatch: pytest.MonkeyPatch) -> None:
    """But for tags, time limits, and the archive: the SDK packs the handler into another one."""
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
    sent = {name: request for name, _, request in client.method_calls if name.startswith("create_")}
    ours = dict(zip(sent, build_requests(DEPLOYMENT, SETTINGS), strict=True))
    tags = {tag["Key"]: tag["Value"] for tag in ours["create_endpoint"]["Tags"]}
    for requests in (ours, sent):
        del requests["create_model"]["PrimaryContainer"]["ModelDataUrl"]
        for request in requests.values():
            request.pop("Tags", None)
    (variant,) = ours["create_endpoint_config"]["ProductionVariants"]
    for name in [name for name in variant if name.endswith("TimeoutInSeconds")]:
        del variant[name]
    assert ours == sent
    assert (tags["traindyno:lab"], tags["traindyno:owner"]) == ("traindyno", "ada")
    assert tags["traindyno:ends_at"] == "2026-09-21T15:13:20Z"


def test_each_type_gets_known_requests_and_nvidia_types_the_images_driver() -> None:
    types = SAGEMAKER.shape_for("ProductionVariantInstanceType").metadata["enum"]
    served = [each for each in types if not each.startswith(("ml.trn", "ml.inf"))]
    for instance_type, jobs in ((each, jobs) for each in (*served, "ml.g99.xlarge") for jobs in (LabJobs(), OWN_JOBS)):
        deployment = replace(DEPLOYMENT, instance_type=instance_type)
        requests = model, config, _ = build_requests(deployment, replace(SETTINGS, jobs=jobs))
        container, (variant,) = model["PrimaryContainer"], config["ProductionVariants"]
        is_gpu = has_gpu(instance_type) or instance_type.startswith(("ml.g", "ml.p"))
        assert ("-gpu-" in container["Image"]) == (GPU_VARIABLE in container["Environment"]) == is_gpu
        assert ("InferenceAmiVersion" in variant) == is_gpu
        assert config.get("KmsKeyId") == jobs.volume_key_arn
        for operation, request in zip(("CreateModel", "CreateEndpointConfig", "CreateEndpoint"), requests, strict=True):
            shape = SAGEMAKER.operation_model(operation)
            if instance_type in types:
                check_request(shape, request, {})
            assert shape.input_shape is not None
            report = ParamValidator().validate(request, shape.input_shape)
            assert not report.has_errors(), report.generate_report()
    assert GPU_VARIABLE == inference.GPU_VARIABLE
    with pytest.raises(ModelNotServable, match=r"got ml\..*Expected an instance type with CPUs"):
        container_kind("ml.trn1.2xlarge")


def test_what_can_not_be_served_creates_nothing() -> None:
    lab = MemoryServing()
    isolated = replace(SETTINGS, jobs=LabJobs(isolates_network=True))
    with pytest.raises(ModelNotServable, match=r"lab traindyno has isolate_network=on, .*needs a network"):
        deploy_model(DEPLOYMENT, lab.serving, isolated, clock=lambda: NOW)
    for refused, says in (
        ({"name": "other--x"}, r'name: got "other--x", expected a name .* begins with traindyno--'),
        ({"hours": 9000}, "hours: got 9000.0, expected up to 8784 hours"),
        ({"max_usd": Decimal("0.067")}, r"expected at least \$0.068, which pays for the 1200 s"),
        ({"max_usd": Decimal(1), "usd_per_hour": None}, r"no amount, as the price of ml\.c5\.xlarge is unknown"),
    ):
        with pytest.raises(DocumentInvalid, match=says):
            parse_deployment(deployment_document(replace(DEPLOYMENT, **refused)), lab="traindyno")
    for late in (NOW + 3601, NOW + 901):
        with pytest.raises(ModelNotServable, match="or reached its limit of time, while its model was copied"):
            deploy_model(DEPLOYMENT, lab.serving, SETTINGS, clock=iter([late]).__next__)
    assert served_model_key(NAME) not in lab.objects.contents
    del lab.objects.contents[SAVED_MODEL]
    with pytest.raises(ModelNotServable, match="large models expire 30 days after"):
        lab.deploy()
    assert not lab.sagemaker.kept["Model"]


def test_requests_are_timed_for_a_minute_at_most() -> None:
    """The clock moves on by 7 s with each look."""
    lab = MemoryServing()
    lab.deploy()
    clock = iter(range(0, 100_000, 7))
    _, latency = check_endpoint(DEPLOYMENT, lab.serving, clock=lambda: float(next(clock)))
    assert (latency.requests, latency.p50_seconds, latency.p99_seconds) == (3, 7, 7)
