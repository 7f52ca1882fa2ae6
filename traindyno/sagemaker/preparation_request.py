"""The CreateTrainingJob request of one attempt to prepare: on demand, on one instance, with the lab's own image."""

from dataclasses import replace
from typing import Any

from traindyno.core.s3_keys import checkpoints_prefix, s3_uri, tokens_prefix
from traindyno.core.suite.preparation import DataPreparation, preparation_seconds, preparation_settings
from traindyno.core.suite.suite import Suite
from traindyno.core.suite.suite_file import suite_converter, workload_document
from traindyno.sagemaker.channels import preparation_channels
from traindyno.sagemaker.images import select_image_uri
from traindyno.sagemaker.job_names import checked_job_name, job_name_prefix
from traindyno.sagemaker.job_settings import JobSettings
from traindyno.sagemaker.launcher import toolkit_hyperparameters
from traindyno.sagemaker.request import (
    algorithm,
    code_channels,
    container_environment,
    job_tags,
    network,
    output_key,
    volume,
)


def preparation_job_name(preparation: DataPreparation, suite_name: str, *, attempt: int, lab: str) -> str:
    """The same for a repeated call, so that it can't start a second job."""
    prefix = job_name_prefix(preparation.execution_id, suite_name, lab=lab)
    what = "copy" if preparation.stages_model else "data"
    return checked_job_name(f"{prefix}{preparation.short_key}-{what}-a{attempt}")


def build_preparation_request(
    preparation: DataPreparation, suite: Suite, *, attempt: int, settings: JobSettings
) -> dict[str, Any]:
    job_name = preparation_job_name(preparation, suite.name, attempt=attempt, lab=settings.lab)
    # The workload's own image may lack the packages that tokenise.
    workload = replace(suite.workload, image=None)
    image_uri = select_image_uri(preparation_settings(preparation.instance), workload, settings)
    bucket, execution_id = settings.results_bucket, preparation.execution_id
    prepared = suite_converter().unstructure(preparation)
    own: dict[str, Any] = {"preparation": prepared, "workload": workload_document(workload)}
    request: dict[str, Any] = {
        "TrainingJobName": job_name,
        "RoleArn": settings.role_arn,
        "AlgorithmSpecification": algorithm(image_uri),
        "HyperParameters": toolkit_hyperparameters(own, suite, job_name=job_name, settings=settings),
        "InputDataConfig": [*preparation_channels(preparation, workload), *code_channels(suite, settings)],
        # Tokens are left as plain files, which a channel can read.
        "OutputDataConfig": {
            "S3OutputPath": s3_uri(bucket, tokens_prefix(preparation.key)),
            "CompressionType": "NONE",
            **output_key(settings.jobs),
        },
        "ResourceConfig": {
            "InstanceType": preparation.instance,
            "InstanceCount": 1,
            **volume(settings.jobs, preparation.instance, size_gb=suite.job.volume_size_gb),
        },
        "StoppingCondition": {"MaxRuntimeInSeconds": preparation_seconds(suite)},
        "CheckpointConfig": {"S3Uri": s3_uri(bucket, checkpoints_prefix(execution_id, preparation.preparation_id))},
        "Environment": {**container_environment(preparation.preparation_id), **workload.environment},
        "ProfilerConfig": {"DisableProfiler": True},
        "Tags": job_tags(suite.name, execution_id, preparation.preparation_id, settings),
        **network(settings.jobs),
    }
    return {name: value for name, value in request.items() if value not in ([], {})}
