"""SageMaker's requests that serve a model, and its descriptions of endpoints."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from traindyno.core.instances.instance_types import find_instance_type, has_gpu
from traindyno.core.lab_names import LAB_TAG
from traindyno.core.s3_keys import s3_uri, served_model_key
from traindyno.core.serving.deployment import IMAGE_REPOSITORY, ModelDeployment, ModelNotServable
from traindyno.sagemaker.images import LOCAL_IMAGE, stock_image_uri
from traindyno.sagemaker.job_settings import LabJobs

ENDS_AT_TAG = "traindyno:ends_at"
# The last of AWS's inference containers for PyTorch; AWS patched it until 2026-06-30.
IMAGES = {kind: f"{IMAGE_REPOSITORY}:2.6.0-{kind}-py312" for kind in ("cpu", "gpu")}
# Without it, instances with NVIDIA GPUs have a driver for CUDA 11.4; this one runs the image's CUDA
# 12.4.
GPU_AMI = "al2-ami-sagemaker-inference-gpu-3-1"
BLACKWELL = ("ml.g7", "ml.p6")
# The handler refuses to serve without a GPU where this is set.
GPU_VARIABLE = "TRAINDYNO_NEEDS_GPU"
START_SECONDS = 900
ENDPOINT_LOG_GROUP = "/aws/sagemaker/Endpoints"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingSettings:
    region: str
    role_arn: str
    bucket: str
    lab: str
    jobs: LabJobs


def build_requests(
    deployment: ModelDeployment, settings: ServingSettings
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """CreateModel's, CreateEndpointConfig's and CreateEndpoint's.

    The handler is in the archive, below ``code/``.

    Raises ModelNotServable in a lab whose containers have no network, and for a type without a
    container.
    """
    if settings.jobs.isolates_network:
        raise ModelNotServable(
            f"lab {settings.lab} has isolate_network=on, and a served model needs a network: its "
            "container installs the model's requirements from the package index when it starts; "
            "deploy the lab without isolate_network first"
        )
    name = deployment.name
    jobs = settings.jobs
    tags = _tags(deployment, settings)
    model = {
        "ModelName": name,
        "ExecutionRoleArn": settings.role_arn,
        "PrimaryContainer": _container(deployment, settings),
        "Tags": tags,
    }
    if jobs.subnet_ids:
        model["VpcConfig"] = {
            "Subnets": [*jobs.subnet_ids],
            "SecurityGroupIds": [*jobs.security_group_ids],
        }
    config: dict[str, Any] = {
        "EndpointConfigName": name,
        "ProductionVariants": [_variant(deployment)],
        "Tags": tags,
    }
    if jobs.volume_key_arn:
        config["KmsKeyId"] = jobs.volume_key_arn
    return model, config, {"EndpointName": name, "EndpointConfigName": name, "Tags": tags}


def _tags(deployment: ModelDeployment, settings: ServingSettings) -> list[dict[str, str]]:
    values = {
        LAB_TAG: settings.lab,
        "traindyno:execution": deployment.execution_id,
        "traindyno:run": deployment.run_id,
        "traindyno:owner": deployment.owner,
        ENDS_AT_TAG: f"{datetime.fromtimestamp(deployment.ends_at, UTC):%Y-%m-%dT%H:%M:%SZ}",
        **settings.jobs.tags,
    }
    return [{"Key": key, "Value": value} for key, value in values.items()]


def _container(deployment: ModelDeployment, settings: ServingSettings) -> dict[str, Any]:
    kind = container_kind(deployment.instance_type)
    environment = {
        "SAGEMAKER_PROGRAM": "inference.py",
        "SAGEMAKER_SUBMIT_DIRECTORY": "/opt/ml/model/code",
        "SAGEMAKER_CONTAINER_LOG_LEVEL": "20",
        "SAGEMAKER_REGION": settings.region,
    }
    if kind == "gpu" or deployment.instance_type == "local.gpu":
        environment[GPU_VARIABLE] = "1"
    return {
        "Image": LOCAL_IMAGE if kind == "local" else stock_image_uri(IMAGES[kind], settings.region),
        "ModelDataUrl": s3_uri(settings.bucket, served_model_key(deployment.name)),
        "Environment": environment,
    }


def _variant(deployment: ModelDeployment) -> dict[str, Any]:
    variant = {
        "VariantName": "AllTraffic",
        "ModelName": deployment.name,
        "InitialVariantWeight": 1.0,
        "InstanceType": deployment.instance_type,
        "InitialInstanceCount": 1,
        "ModelDataDownloadTimeoutInSeconds": START_SECONDS,
        "ContainerStartupHealthCheckTimeoutInSeconds": START_SECONDS,
    }
    if container_kind(deployment.instance_type) == "gpu":
        variant["InferenceAmiVersion"] = GPU_AMI
    return variant


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointState:
    name: str
    arn: str
    status: str
    failure: str | None = None

    @classmethod
    def of(cls, description: Mapping[str, Any]) -> "EndpointState":
        """Reads what DescribeEndpoint and ListEndpoints answer."""
        name, arn, status = (description[f"Endpoint{part}"] for part in ("Name", "Arn", "Status"))
        return cls(name=name, arn=arn, status=status, failure=description.get("FailureReason"))

    @property
    def has_failed(self) -> bool:
        return self.status in {"Failed", "OutOfService"}

    @property
    def is_busy(self) -> bool:
        """SageMaker deletes no endpoint while it creates or changes it."""
        return not (
            self.has_failed or self.status in {"InService", "Deleting", "UpdateRollbackFailed"}
        )


def container_kind(instance_type: str) -> str:
    """Kind of an endpoint's container: ``local``, ``cpu`` or ``gpu``.

    Raises ModelNotServable for a type that AWS's containers don't run on.
    """
    if instance_type.startswith("local."):
        return "local"
    if instance_type.startswith(("ml.trn", "ml.inf")):
        raise ModelNotServable(
            f"got {instance_type}: traindyno deploy has no container for Trainium and Inferentia. "
            "Expected an instance type with CPUs or NVIDIA GPUs"
        )
    if instance_type.startswith(BLACKWELL):
        raise ModelNotServable(
            f"got {instance_type}: AWS's last container for PyTorch endpoints has CUDA 12.4 and no "
            "code for GPUs of the generation Blackwell. Expected an older GPU, such as "
            "ml.g6.xlarge, or an instance type with CPUs"
        )
    # The table lacks types that are newer than it. A container for CPUs would leave the GPU of such
    # a type unused.
    is_newer_gpu = find_instance_type(instance_type) is None and instance_type.startswith(
        ("ml.g", "ml.p")
    )
    return "gpu" if has_gpu(instance_type) or is_newer_gpu else "cpu"
