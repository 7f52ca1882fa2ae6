"""The CreateTrainingJob request of one attempt, equal to what the SageMaker SDK sends for the same job."""

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any, TypeGuard

from traindyno.core.instances.instance_types import InstanceType, find_instance_type
from traindyno.core.lab_names import jobs_prefix
from traindyno.core.s3_keys import checkpoints_prefix, output_prefix, s3_uri
from traindyno.core.step_log.line import CONTAINER_DIRECTORY, DIRECTORY_VARIABLE
from traindyno.core.suite.choices import InputMode
from traindyno.core.suite.fallback_cells import accepted_types, run_on
from traindyno.core.suite.job_limits_check import MODEL_CHANNEL, TOKENIZER_CHANNEL, TRAIN_CHANNEL
from traindyno.core.suite.suite import Purchase, Run, Suite, Workload
from traindyno.sagemaker.images import has_framework_version, select_image_uri
from traindyno.sagemaker.job_settings import JobSettings
from traindyno.sagemaker.launcher import build_hyperparameters

RUN_ID_VARIABLE = "TRAINDYNO_RUN_ID"
JOB_NAME_CHARACTERS = 63
SUITE_NAME_CHARACTERS = 15
# EFA types that the training toolkit does not set up by itself (sagemaker-training 5.1.4).
EFA_FAMILIES_WITHOUT_SETUP = ("p5en", "p6-b200", "p6-b300", "g6e", "g7e", "trn1n", "trn2")


def training_job_name(run: Run, suite_name: str, *, attempt: int, lab: str) -> str:
    """The same for a repeated call, so that it can't start a second job; another attempt has another name."""
    prefix = job_name_prefix(run.execution_id, suite_name, lab=lab)
    return checked_job_name(f"{prefix}{run.cell.cell_id}-t{run.trial}-a{attempt}")


def checked_job_name(name: str) -> str:
    """ValueError if SageMaker would refuse its length."""
    if len(name) > JOB_NAME_CHARACTERS:
        raise ValueError(
            f"job name {name} has {len(name)} characters; at most {JOB_NAME_CHARACTERS}: shorten the lab's name"
        )
    return name


def job_name_prefix(execution_id: str, suite_name: str, *, lab: str) -> str:
    """What the names of all jobs of one execution begin with."""
    digest = hashlib.sha1(execution_id.encode(), usedforsecurity=False).hexdigest()[:8]
    suite_part = suite_name[:SUITE_NAME_CHARACTERS].rstrip("-")
    return f"{jobs_prefix(lab)}{suite_part}-{digest}-"


def build_training_job_request(
    run: Run, suite: Suite, *, attempt: int, settings: JobSettings, placed_on: str | None = None
) -> dict[str, Any]:
    """``placed_on``: the instance type on which an earlier attempt of the run has worked already."""
    planned = run
    run = run_on(suite, run, placed_on) if placed_on else run
    instance_type = find_instance_type(run.cell.settings.instance)
    assert instance_type is not None, "a parsed suite names known instance types only"
    job_name = training_job_name(planned, suite.name, attempt=attempt, lab=settings.lab)
    image_uri = select_image_uri(run.cell.settings, suite.workload, settings)
    request: dict[str, Any] = {
        "TrainingJobName": job_name,
        "RoleArn": settings.role_arn,
        "AlgorithmSpecification": algorithm(image_uri),
        "HyperParameters": build_hyperparameters(run, suite, image_uri=image_uri, job_name=job_name, settings=settings),
        "InputDataConfig": _channels(run, suite.workload),
        "OutputDataConfig": _output(run, settings),
        "ResourceConfig": _resources(run, suite, settings.volume_size_gb, is_placed=bool(placed_on)),
        "StoppingCondition": _stopping_condition(suite, instance_type),
        "CheckpointConfig": {
            "S3Uri": s3_uri(settings.results_bucket, checkpoints_prefix(run.execution_id, run.run_id))
        },
        "Environment": _environment(run, suite, instance_type),
        "ProfilerConfig": {"DisableProfiler": True},
        "Tags": job_tags(suite.name, run.execution_id, run.run_id, settings),
    }
    if suite.purchase is Purchase.SPOT:
        request["EnableManagedSpotTraining"] = True
    if settings.subnet_ids:
        request["VpcConfig"] = {
            "Subnets": list(settings.subnet_ids),
            "SecurityGroupIds": list(settings.security_group_ids),
        }
    return {name: value for name, value in request.items() if value not in ([], {})}


def algorithm(image_uri: str) -> dict[str, Any]:
    algorithm: dict[str, Any] = {"TrainingInputMode": "File", "TrainingImage": image_uri}
    if has_framework_version(image_uri):
        algorithm["EnableSageMakerMetricsTimeSeries"] = True
    return algorithm


def _channels(run: Run, workload: Workload) -> list[dict[str, Any]]:
    """Prepared tokens replace the dataset and bring their tokenizer."""
    further = [channel(name, uri, InputMode.FILE) for name, uri in workload.channels.items()]
    return [*_dataset_channel(run, workload), *_pretrained_channels(run, workload), *further]


def _dataset_channel(run: Run, workload: Workload) -> Iterator[dict[str, Any]]:
    dataset = workload.dataset
    if dataset is None or dataset.input_mode is InputMode.STREAM:
        return
    prepared = run.tokens.s3_uri if run.tokens else None
    uri = prepared or dataset.path
    if uri and is_in_s3(uri):
        yield channel(TRAIN_CHANNEL, uri, dataset.input_mode)


def _pretrained_channels(run: Run, workload: Workload) -> Iterator[dict[str, Any]]:
    """A tokenizer uses the model's channel, unless a different model is in it."""
    model = workload.model.path if workload.model else None
    tokenizer = workload.tokenizer.path if workload.tokenizer else None
    if model and is_in_s3(model):
        yield channel(MODEL_CHANNEL, model, InputMode.FILE)
    if tokenizer and is_in_s3(tokenizer) and tokenizer != model and run.tokens is None:
        yield channel(TOKENIZER_CHANNEL if is_in_s3(model) else MODEL_CHANNEL, tokenizer, InputMode.FILE)


def is_in_s3(path: str | None) -> TypeGuard[str]:
    return path is not None and path.startswith("s3://")


def channel(name: str, uri: str, mode: InputMode) -> dict[str, Any]:
    source = {"S3DataType": "S3Prefix", "S3Uri": uri, "S3DataDistributionType": "FullyReplicated"}
    channel: dict[str, Any] = {"DataSource": {"S3DataSource": source}, "ChannelName": name}
    if mode is not InputMode.FILE:
        channel["InputMode"] = mode.value
    return channel


def _output(run: Run, settings: JobSettings) -> dict[str, str]:
    return {"S3OutputPath": s3_uri(settings.results_bucket, output_prefix(run.execution_id, run.run_id))}


def _resources(run: Run, suite: Suite, volume_size_gb: int, *, is_placed: bool = False) -> dict[str, Any]:
    """``is_placed``: an earlier attempt has run on this type, so the next one uses the same type."""
    settings = run.cell.settings
    if settings.instance in suite.instance_preferences and not is_placed:
        return {
            "InstancePreferences": [_preference(name, suite) for name in accepted_types(suite, settings.instance)],
            "InstanceCount": settings.instance_count,
            "VolumeSizeInGB": volume_size_gb,
        }
    resources: dict[str, Any] = {
        "InstanceType": settings.instance,
        "InstanceCount": settings.instance_count,
        "VolumeSizeInGB": volume_size_gb,
    }
    if suite.warm_pool_seconds:
        resources["KeepAlivePeriodInSeconds"] = suite.warm_pool_seconds
    if settings.instance in suite.training_plans:
        resources["TrainingPlanArn"] = suite.training_plans[settings.instance]
    return resources


def _preference(name: str, suite: Suite) -> dict[str, Any]:
    plan = suite.training_plans.get(name)
    return {"InstanceType": name, **({"TrainingPlanArns": [plan]} if plan else {})}


def _stopping_condition(suite: Suite, instance_type: InstanceType) -> dict[str, int]:
    """SageMaker bounds the wait: together with the run for spot; on demand for accelerators only."""
    limits = suite.limits
    condition = {"MaxRuntimeInSeconds": limits.max_job_seconds}
    if suite.purchase is Purchase.SPOT:
        condition["MaxWaitTimeInSeconds"] = limits.max_job_seconds + limits.max_pending_seconds
    elif instance_type.has_accelerator and not instance_type.is_local:
        condition["MaxPendingTimeInSeconds"] = limits.max_pending_seconds
    return condition


def _environment(run: Run, suite: Suite, instance_type: InstanceType) -> dict[str, str]:
    environment = container_environment(run.run_id)
    if run.cell.settings.instance_count > 1 and instance_type.family in EFA_FAMILIES_WITHOUT_SETUP:
        environment |= {"FI_PROVIDER": "efa", "FI_EFA_USE_DEVICE_RDMA": "1"}
    return {**environment, **suite.workload.environment}


def container_environment(run_id: str) -> dict[str, str]:
    return {DIRECTORY_VARIABLE: CONTAINER_DIRECTORY, RUN_ID_VARIABLE: run_id}


def job_tags(suite_name: str, execution_id: str, run_id: str, settings: JobSettings) -> list[dict[str, str]]:
    tags = {
        "traindyno:lab": settings.lab,
        "traindyno:suite": suite_name,
        "traindyno:execution": execution_id,
        "traindyno:run": run_id,
        **settings.tags,
    }
    return [{"Key": key, "Value": value} for key, value in tags.items()]


def job_name_of(request: Mapping[str, Any]) -> str:
    name: str = request["TrainingJobName"]
    return name


def build_release_request(job_name: str) -> dict[str, Any]:
    """The UpdateTrainingJob request that ends the billing of the instances that a job left warm."""
    return {"TrainingJobName": job_name, "ResourceConfig": {"KeepAlivePeriodInSeconds": 0}}
