"""The requests that serve a model: CreateModel, CreateEndpointConfig, CreateEndpoint and CreateTransformJob."""

from dataclasses import dataclass
from typing import Any, NoReturn

from traindyno.core.instances.instance_types import find_instance_type, has_gpu, has_instance_storage
from traindyno.core.s3_keys import check_requests_key, s3_uri, served_model_key, transform_output_prefix
from traindyno.core.serving.deployment import Hosting, ModelDeployment, ModelNotServable, check_job_name
from traindyno.core.serving.samples import CONTENT_TYPE, LINES_CONTENT_TYPE
from traindyno.sagemaker.images import LOCAL_IMAGE, inference_image_uri
from traindyno.sagemaker.job_settings import LabJobs

VARIANT = "AllTraffic"
PAYLOAD_MIB = 1
# Time limits of the real-time endpoint; SageMaker accepts 60 to 3600 seconds.
START_SECONDS = 900
# Inferentia's container compiles the model when it starts.
NEURON_START_SECONDS = 3600
# One worker of the model server uses one NeuronCore: the default, one for each vCPU, would take all cores. TorchServe
# 0.11 ends a worker that needs longer than the server's timeout to load its model. Sources: sagemaker-pytorch-inference
# 2.0.25, and the configuration of the Neuron Runtime.
NEURON_ENVIRONMENT = {
    "SAGEMAKER_MODEL_SERVER_WORKERS": "1",
    "SAGEMAKER_MODEL_SERVER_TIMEOUT": str(NEURON_START_SECONDS),
    "NEURON_RT_NUM_CORES": "1",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingSettings:
    """The lab's settings for a deployment."""

    region: str
    role_arn: str
    bucket: str
    lab: str
    jobs: LabJobs


def build_model_request(deployment: ModelDeployment, settings: ServingSettings) -> dict[str, Any]:
    """The handler travels in the model's archive, below ``code/``, as the SageMaker SDK packs it.

    Raises ModelNotServable in a lab whose containers have no network, and for a serverless endpoint of a lab whose
    jobs run in a VPC.
    """
    if settings.jobs.isolates_network:
        refuse_isolation(settings.lab)
    if settings.jobs.subnet_ids and deployment.hosting is Hosting.SERVERLESS:
        raise ModelNotServable(
            f"{deployment.name}: SageMaker does not support serverless endpoints in a VPC, and this lab's models run in"
            f" {', '.join(settings.jobs.subnet_ids)}; expected an instance type (--instance)"
        )
    container = {
        "Image": _image_uri(deployment, settings.region),
        "ModelDataUrl": s3_uri(settings.bucket, served_model_key(deployment.name)),
        "Environment": {
            "SAGEMAKER_PROGRAM": "inference.py",
            "SAGEMAKER_SUBMIT_DIRECTORY": "/opt/ml/model/code",
            "SAGEMAKER_CONTAINER_LOG_LEVEL": "20",
            "SAGEMAKER_REGION": settings.region,
            **(NEURON_ENVIRONMENT if _container_kind(deployment.instance_type) == "neuron" else {}),
        },
    }
    request: dict[str, Any] = {
        "ModelName": deployment.name,
        "ExecutionRoleArn": settings.role_arn,
        "PrimaryContainer": container,
        "Tags": _tags(deployment, settings),
    }
    if settings.jobs.subnet_ids:
        request["VpcConfig"] = {
            "Subnets": [*settings.jobs.subnet_ids],
            "SecurityGroupIds": [*settings.jobs.security_group_ids],
        }
    return request


def build_endpoint_config_request(deployment: ModelDeployment, settings: ServingSettings) -> dict[str, Any]:
    variant: dict[str, Any] = {"VariantName": VARIANT, "ModelName": deployment.name, "InitialVariantWeight": 1.0}
    if deployment.hosting is Hosting.SERVERLESS:
        variant["ServerlessConfig"] = {
            "MemorySizeInMB": deployment.memory_mib,
            "MaxConcurrency": deployment.max_concurrency,
        }
    else:
        is_compiled = _container_kind(deployment.instance_type) == "neuron"
        variant |= {
            "InstanceType": deployment.instance_type,
            "InitialInstanceCount": deployment.instance_count,
            "ModelDataDownloadTimeoutInSeconds": START_SECONDS,
            "ContainerStartupHealthCheckTimeoutInSeconds": NEURON_START_SECONDS if is_compiled else START_SECONDS,
        }
    request = {
        "EndpointConfigName": deployment.name,
        "ProductionVariants": [variant],
        "Tags": _tags(deployment, settings),
    }
    key = settings.jobs.volume_key_arn
    return {**request, "KmsKeyId": key} if key and deployment.hosting is Hosting.ENDPOINT else request


def build_endpoint_request(deployment: ModelDeployment, settings: ServingSettings) -> dict[str, Any]:
    return {
        "EndpointName": deployment.name,
        "EndpointConfigName": deployment.name,
        "Tags": _tags(deployment, settings),
    }


def build_transform_request(deployment: ModelDeployment, settings: ServingSettings) -> dict[str, Any]:
    """Each object under the input's prefix has one request on each line; the answers' object ends with ``.out``."""
    name, count = deployment.name, deployment.instance_count
    return _transform_request(name, str(deployment.input_s3_uri), count, deployment, settings)


def build_check_request(deployment: ModelDeployment, settings: ServingSettings) -> dict[str, Any]:
    """The same model on one instance, over the evaluation samples."""
    samples = s3_uri(settings.bucket, check_requests_key(deployment.name))
    return _transform_request(check_job_name(deployment.name), samples, 1, deployment, settings)


def _transform_request(
    name: str, input_s3_uri: str, instance_count: int, deployment: ModelDeployment, settings: ServingSettings
) -> dict[str, Any]:
    output: dict[str, Any] = {
        "S3OutputPath": s3_uri(settings.bucket, transform_output_prefix(name)),
        "Accept": LINES_CONTENT_TYPE,
        "AssembleWith": "Line",
    }
    if settings.jobs.output_key_arn:
        output["KmsKeyId"] = settings.jobs.output_key_arn
    resources: dict[str, Any] = {
        "InstanceType": deployment.instance_type,
        "InstanceCount": instance_count,
    }
    key = settings.jobs.volume_key_arn
    # SageMaker refuses the key for these types; an endpoint's configuration may have one with any type.
    if key and not has_instance_storage(str(deployment.instance_type)):
        resources["VolumeKmsKeyId"] = key
    return {
        "TransformJobName": name,
        "ModelName": deployment.name,
        "BatchStrategy": "MultiRecord",
        "MaxPayloadInMB": PAYLOAD_MIB,
        "TransformInput": {
            "DataSource": {"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": input_s3_uri}},
            "ContentType": LINES_CONTENT_TYPE,
            "SplitType": "Line",
            "CompressionType": "None",
        },
        "TransformOutput": output,
        "TransformResources": resources,
        "Tags": _tags(deployment, settings),
    }


def invocation(deployment_name: str, body: bytes) -> dict[str, Any]:
    return {"EndpointName": deployment_name, "Body": body, "ContentType": CONTENT_TYPE, "Accept": CONTENT_TYPE}


def refuse_isolation(lab: str) -> NoReturn:
    """Raises ModelNotServable."""
    raise ModelNotServable(why_isolated_serves_none(lab))


def why_isolated_serves_none(lab: str) -> str:
    return (
        f"lab {lab} has isolate_network=on, and a served model needs a network: its container installs the model's"
        " requirements from the package index when it starts; deploy the lab without isolate_network first"
    )


def check_instance_type(instance_type: str) -> None:
    """Raises ModelNotServable for a type that the inference containers don't run on."""
    if instance_type.startswith(("ml.trn", "ml.inf1")):
        raise ModelNotServable(
            f"got {instance_type}: traindyno deploy has no container for Trainium and for Inferentia 1. Expected an"
            " instance type with CPUs or NVIDIA GPUs, or ml.inf2"
        )


def _image_uri(deployment: ModelDeployment, region: str) -> str:
    kind = _container_kind(deployment.instance_type)
    return LOCAL_IMAGE if kind == "local" else inference_image_uri(kind, region)


def _container_kind(instance_type: str | None) -> str:
    """``local``, or the kind of AWS's inference container. None is a serverless endpoint, which has CPUs."""
    if instance_type is None:
        return "none"
    if instance_type.startswith("local."):
        return "local"
    check_instance_type(instance_type)
    if instance_type.startswith("ml.inf2."):
        return "neuron"
    # The table lacks types that are newer than it. A container for CPUs would leave the GPU of such a type unused.
    is_newer_gpu = find_instance_type(instance_type) is None and instance_type.startswith(("ml.g", "ml.p"))
    return "gpu" if has_gpu(instance_type) or is_newer_gpu else "none"


def _tags(deployment: ModelDeployment, settings: ServingSettings) -> list[dict[str, str]]:
    tags = {
        "traindyno:lab": settings.lab,
        "traindyno:suite": deployment.suite_name,
        "traindyno:execution": deployment.execution_id,
        "traindyno:run": deployment.run_id,
        "traindyno:owner": deployment.owner,
        **settings.jobs.tags,
    }
    return [{"Key": key, "Value": value} for key, value in tags.items()]
