"""The CreateTrainingJob request of one attempt to make tokens: on demand, on one instance, in the lab's own image."""

from dataclasses import replace
from typing import Any

from traindyno.core.s3_keys import checkpoints_prefix, s3_uri, tokens_prefix
from traindyno.core.suite.choices import InputMode
from traindyno.core.suite.job_limits_check import MODEL_CHANNEL, TOKENIZER_CHANNEL, TRAIN_CHANNEL
from traindyno.core.suite.preparation import DataPreparation, preparation_seconds, preparation_settings
from traindyno.core.suite.suite import Suite, Workload
from traindyno.core.suite.suite_file import measurement_document, settings_document, workload_document
from traindyno.sagemaker.images import select_image_uri
from traindyno.sagemaker.job_settings import JobSettings
from traindyno.sagemaker.launcher import toolkit_hyperparameters
from traindyno.sagemaker.request import (
    algorithm,
    channel,
    checked_job_name,
    container_environment,
    is_in_s3,
    job_name_prefix,
    job_tags,
)


def preparation_job_name(preparation: DataPreparation, suite_name: str, *, attempt: int, lab: str) -> str:
    """The same for a repeated call, so that it can't start a second job."""
    prefix = job_name_prefix(preparation.execution_id, suite_name, lab=lab)
    return checked_job_name(f"{prefix}{preparation.short_key}-data-a{attempt}")


def build_preparation_request(
    preparation: DataPreparation, suite: Suite, *, attempt: int, settings: JobSettings
) -> dict[str, Any]:
    job_name = preparation_job_name(preparation, suite.name, attempt=attempt, lab=settings.lab)
    # The workload's own image may lack the packages that tokenise.
    workload = replace(suite.workload, image=None)
    image_uri = select_image_uri(preparation_settings(preparation), workload, settings)
    bucket, execution_id = settings.results_bucket, preparation.execution_id
    own = {
        "run_id": preparation.preparation_id,
        "workload": workload_document(workload),
        "settings": settings_document(preparation_settings(preparation)),
        "measurement": measurement_document(suite.measurement),
        "tokens": {"key": preparation.key},
    }
    request: dict[str, Any] = {
        "TrainingJobName": job_name,
        "RoleArn": settings.role_arn,
        "AlgorithmSpecification": algorithm(image_uri),
        "HyperParameters": toolkit_hyperparameters(own, suite, job_name=job_name, settings=settings),
        "InputDataConfig": _channels(workload),
        # Tokens are left as plain files, which a channel can read.
        "OutputDataConfig": {
            "S3OutputPath": s3_uri(bucket, tokens_prefix(preparation.key)),
            "CompressionType": "NONE",
        },
        "ResourceConfig": {
            "InstanceType": preparation.instance,
            "InstanceCount": 1,
            "VolumeSizeInGB": settings.volume_size_gb,
        },
        "StoppingCondition": {"MaxRuntimeInSeconds": preparation_seconds(suite)},
        "CheckpointConfig": {"S3Uri": s3_uri(bucket, checkpoints_prefix(execution_id, preparation.preparation_id))},
        "Environment": {**container_environment(preparation.preparation_id), **workload.environment},
        "ProfilerConfig": {"DisableProfiler": True},
        "Tags": job_tags(suite.name, execution_id, preparation.preparation_id, settings),
    }
    return {name: value for name, value in request.items() if value not in ([], {})}


def _channels(workload: Workload) -> list[dict[str, Any]]:
    """The dataset and the tokenizer, where they are in S3."""
    dataset = workload.dataset
    channels = [channel(TRAIN_CHANNEL, dataset.path, dataset.input_mode)] if dataset and is_in_s3(dataset.path) else []
    model = workload.model.path if workload.model else None
    tokenizer = workload.tokenizer.path if workload.tokenizer else None
    if is_in_s3(model):
        # Only the tokenizer's files of the model are read.
        channels.append(channel(MODEL_CHANNEL, model, InputMode.FAST_FILE))
    if is_in_s3(tokenizer) and tokenizer != model:
        channels.append(channel(TOKENIZER_CHANNEL if is_in_s3(model) else MODEL_CHANNEL, tokenizer, InputMode.FILE))
    return channels
