"""The requests that serve a model, held against botocore's own model and the SDK's table of images."""

from dataclasses import replace
from typing import Any

import botocore.session
import pytest
from botocore.validate import ParamValidator

from localcloud.sagemaker_service.api.request_check import check_request
from tests.unit.serving_in_memory import DEPLOYMENT, NAME, SETTINGS
from traindyno.core.instances.instance_types import has_gpu
from traindyno.core.serving.deployment import Hosting, ModelNotServable, check_job_name, deployment_name
from traindyno.sagemaker.job_settings import LabJobs
from traindyno.sagemaker.serving.serving_request import (
    build_check_request,
    build_endpoint_config_request,
    build_endpoint_request,
    build_model_request,
    build_transform_request,
    check_instance_type,
)

KEY = "arn:aws:kms:us-east-1:111122223333:key/abc"
SERVERLESS = replace(
    DEPLOYMENT, hosting=Hosting.SERVERLESS, instance_type=None, memory_mib=2048, max_concurrency=5, usd_per_hour=None
)
TRANSFORM = replace(DEPLOYMENT, hosting=Hosting.TRANSFORM, input_s3_uri="s3://results/data/x/", expires_at=None)
INFERENTIA = replace(DEPLOYMENT, instance_type="ml.inf2.xlarge")
# Families of transform jobs with EBS volumes only, by EC2's list of instance store volumes
WITHOUT_STORAGE = {"m4", "m5", "m6i", "m7i", "c4", "c5", "c6i", "c7i", "r6i", "r7i", "p2", "p3", "inf2"}
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


@pytest.mark.parametrize("settings", [SETTINGS, OWN_NETWORK])
@pytest.mark.parametrize(
    ("operation", "request_of", "deployment"),
    [
        ("CreateModel", build_model_request, DEPLOYMENT),
        ("CreateModel", build_model_request, INFERENTIA),
        ("CreateEndpointConfig", build_endpoint_config_request, INFERENTIA),
        ("CreateEndpointConfig", build_endpoint_config_request, DEPLOYMENT),
        ("CreateEndpointConfig", build_endpoint_config_request, SERVERLESS),
        ("CreateEndpoint", build_endpoint_request, DEPLOYMENT),
        ("CreateTransformJob", build_transform_request, TRANSFORM),
        ("CreateTransformJob", build_check_request, TRANSFORM),
        ("CreateTransformJob", build_transform_request, replace(TRANSFORM, instance_type="ml.inf2.xlarge")),
    ],
)
def test_each_request_is_one_that_sagemaker_knows(
    operation: str, request_of: Any, deployment: Any, settings: Any
) -> None:
    model = botocore.session.get_session().get_service_model("sagemaker").operation_model(operation)
    request = request_of(deployment, settings)
    assert model.input_shape is not None
    report = ParamValidator().validate(request, model.input_shape)  # names, types and required members
    assert not report.has_errors(), report.generate_report()
    check_request(model, request, {})  # lengths, ranges, enums and patterns
    tags = {tag["Key"]: tag["Value"] for tag in request["Tags"]}
    assert tags["traindyno:owner"] == "ada"
    assert tags["traindyno:lab"] == "traindyno"


def test_a_serverless_endpoint_is_refused_where_models_run_in_a_vpc() -> None:
    assert "VpcConfig" not in build_model_request(SERVERLESS, SETTINGS)
    with pytest.raises(
        ModelNotServable, match=r"does not support serverless endpoints in a VPC.* subnet-0123456789abcdef0; expected"
    ):
        build_model_request(SERVERLESS, OWN_NETWORK)


def test_no_model_is_created_where_containers_have_no_network() -> None:
    isolated = replace(SETTINGS, jobs=LabJobs(isolates_network=True))
    for deployment in (DEPLOYMENT, SERVERLESS, TRANSFORM, INFERENTIA):
        with pytest.raises(ModelNotServable, match=r"lab traindyno has isolate_network=on, .*needs a network"):
            build_model_request(deployment, isolated)


def transform_types() -> list[str]:
    model = botocore.session.get_session().get_service_model("sagemaker")
    return list(model.shape_for("TransformInstanceType").metadata["enum"])


def test_the_table_has_every_type_with_gpus_that_hosts_models() -> None:
    """A type outside the table gets the container for CPUs."""
    model = botocore.session.get_session().get_service_model("sagemaker")
    types = {*model.shape_for("ProductionVariantInstanceType").metadata["enum"], *transform_types()}
    hosting = {name for name in types if name.startswith(("ml.g", "ml.p"))}
    assert hosting
    assert {name for name in hosting if not has_gpu(name)} == set()


@pytest.mark.parametrize("instance_type", transform_types())
def test_a_transform_job_gets_the_volume_key_where_sagemaker_accepts_one(instance_type: str) -> None:
    # Refused for types with instance storage (TransformResources); an endpoint's configuration may always have a key.
    deployment = replace(TRANSFORM, instance_type=instance_type)
    for build in (build_transform_request, build_check_request):
        has_key = build(deployment, OWN_NETWORK)["TransformResources"].get("VolumeKmsKeyId") == KEY
        assert has_key == (instance_type.split(".")[1] in WITHOUT_STORAGE)
    if not instance_type.startswith(("ml.trn", "ml.inf1")):
        on_endpoint = replace(DEPLOYMENT, instance_type=instance_type)
        assert build_endpoint_config_request(on_endpoint, OWN_NETWORK)["KmsKeyId"] == KEY


def test_the_image_is_the_one_that_the_sdk_finds() -> None:
    from sagemaker import image_uris

    for instance_type in ("ml.c5.xlarge", "ml.g5.xlarge"):
        request = build_model_request(replace(DEPLOYMENT, instance_type=instance_type), SETTINGS)
        assert request["PrimaryContainer"]["Image"] == image_uris.retrieve(
            "pytorch", "us-east-1", version="2.6.0", py_version="py312", image_scope="inference",
            instance_type=instance_type,
        )  # fmt: skip


def test_the_container_gets_the_deployments_own_copy_of_the_model_and_its_handler() -> None:
    container = build_model_request(DEPLOYMENT, SETTINGS)["PrimaryContainer"]
    assert container["ModelDataUrl"] == f"s3://results/models/{NAME}/model.tar.gz"
    assert container["Environment"]["SAGEMAKER_PROGRAM"] == "inference.py"


def test_an_endpoint_has_instances_and_captures_no_data() -> None:
    request = build_endpoint_config_request(replace(DEPLOYMENT, instance_count=2), SETTINGS)
    (variant,) = request["ProductionVariants"]
    assert (variant["InstanceType"], variant["InitialInstanceCount"]) == ("ml.c5.xlarge", 2)
    assert "DataCaptureConfig" not in request
    (serverless,) = build_endpoint_config_request(SERVERLESS, OWN_NETWORK)["ProductionVariants"]
    assert serverless["ServerlessConfig"] == {"MemorySizeInMB": 2048, "MaxConcurrency": 5}
    assert "InstanceType" not in serverless


def test_a_transform_job_reads_lines_and_writes_below_the_labs_own_prefix() -> None:
    request = build_transform_request(TRANSFORM, SETTINGS)
    assert request["TransformInput"]["SplitType"] == request["TransformOutput"]["AssembleWith"] == "Line"
    assert request["TransformOutput"]["S3OutputPath"] == f"s3://results/transforms/{NAME}/"


def test_inferentia_gets_its_container_one_worker_and_time_to_compile() -> None:
    container = build_model_request(INFERENTIA, SETTINGS)["PrimaryContainer"]
    assert container["Image"] == (
        "763104351884.dkr.ecr.us-east-1.amazonaws.com/"
        "pytorch-inference-neuronx:2.9.0-neuronx-py312-sdk2.30.0-ubuntu24.04"
    )
    (variant,) = build_endpoint_config_request(INFERENTIA, SETTINGS)["ProductionVariants"]
    assert variant["ContainerStartupHealthCheckTimeoutInSeconds"] == 3600
    assert (
        container["Environment"].items()
        >= {
            "SAGEMAKER_PROGRAM": "inference.py",
            "SAGEMAKER_MODEL_SERVER_WORKERS": "1",
            "SAGEMAKER_MODEL_SERVER_TIMEOUT": "3600",
            "NEURON_RT_NUM_CORES": "1",
        }.items()
    )
    (other,) = build_endpoint_config_request(DEPLOYMENT, SETTINGS)["ProductionVariants"]
    assert other["ContainerStartupHealthCheckTimeoutInSeconds"] == 900
    assert "NEURON_RT_NUM_CORES" not in build_model_request(DEPLOYMENT, SETTINGS)["PrimaryContainer"]["Environment"]


@pytest.mark.parametrize(
    "instance_type", ["ml.inf1.xlarge", "ml.trn1.2xlarge", "ml.trn1n.32xlarge", "ml.trn2.48xlarge"]
)
def test_a_type_without_a_container_is_refused(instance_type: str) -> None:
    with pytest.raises(ModelNotServable, match=f"got {instance_type}: .* CPUs or NVIDIA GPUs, or ml.inf2"):
        check_instance_type(instance_type)


@pytest.mark.parametrize(
    ("instance_type", "kind"), [("ml.g5.xlarge", "gpu"), ("ml.g99.xlarge", "gpu"), ("ml.m5d.large", "cpu")]
)
def test_type_outside_the_table_gets_the_container_of_its_letter(instance_type: str, kind: str) -> None:
    request = build_model_request(replace(DEPLOYMENT, instance_type=instance_type), SETTINGS)
    assert f"-{kind}-" in request["PrimaryContainer"]["Image"]


def test_names_leave_room_for_the_check_within_sagemakers_63_characters() -> None:
    name = deployment_name(
        lab="a-lab-of-18-letter", suite_name="a-very-long-name-of-a-suite", cell_id="c" * 30, unique="abc123"
    )
    assert len(check_job_name(name)) <= 63
    assert name.startswith("a-lab-of-18-letter--")
